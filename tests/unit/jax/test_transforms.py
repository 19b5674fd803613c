"""One pullback, every transformation of JAX: against plain functions that JAX differentiates itself."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import pullback as pb

DERIVATIVES = {
    "jacrev": jax.jacrev,
    "jacfwd": jax.jacfwd,
    "linearize": lambda f: lambda x: jnp.stack([jax.linearize(f, x)[1](v) for v in jnp.eye(3)]),
    "forward over reverse": jax.hessian,
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
    "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(f)),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "third order": lambda f: jax.jacfwd(jax.jacrev(jax.jacrev(f))),
}

SURROUNDINGS = {
    "plain": lambda f: f,
    "jit inside": jax.jit,
    "vmap": lambda f: jax.vmap(f),
    "vmap of one argument": lambda f: lambda x: jax.vmap(lambda y: f(x * y).sum())(x),
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, r: (f(c) / 4, f(r + c)), x, jnp.stack([x, 2 * x]))[1],
    "fori_loop": lambda f: lambda x: jax.lax.fori_loop(0, 2, lambda i, c: f(c) / 4 + 1, x),
    "cond": lambda f: lambda x: jax.lax.cond(x.sum() > 0, f, lambda x: x, x),
    "remat": lambda f: jax.checkpoint(lambda x: f(f(x) / 9 + 1)),
}


@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES.keys())
def test_every_derivative_is_that_of_the_plain_function(pair, point, mode, derivative):
    x, w = point
    ours, plain = (functools.partial(lambda f, x: f(x, w), f) for f in pair)
    want = jax.jit(derivative(plain))(x)  # one program, where eager mode compiles every operation
    np.testing.assert_allclose(mode(derivative(ours))(x), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("around", SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
def test_every_surrounding_keeps_the_derivatives_to_second_order(pair, point, around):
    x, _ = point
    ours, plain = (around(functools.partial(lambda f, x: f(x, jnp.full_like(x, 2.0)), f)) for f in pair)

    @functools.partial(jax.jit, static_argnums=0)
    def derivatives(f, x):
        orders = (jax.jacrev, jax.jacfwd, jax.hessian, lambda f: jax.jacrev(jax.jacrev(f)))
        return [derivative(f)(x) for derivative in orders]

    for got, want in zip(derivatives(ours, x), derivatives(plain, x)):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)


def test_jax_itself_finds_the_gradients_right_in_both_modes_to_second_order(pair, point):
    check_grads(pair[0], point, order=2, modes=("fwd", "rev"))


def test_a_while_loop_has_forward_mode(pair, point, mode):
    x, w = point

    def repeated(f):
        return lambda x: jax.lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1], w) / 9 + 1), (0, x)
        )[1]

    ours, plain = map(repeated, pair)
    want = jax.jit(jax.jacfwd(plain))(x)
    np.testing.assert_allclose(mode(jax.jacfwd(ours))(x), want, rtol=1e-9, atol=1e-12)


def test_both_arguments_of_a_batch_have_gradients(pair, point):
    batch = tuple(jnp.stack([a, a + 1]) for a in point)
    ours, plain = (jax.vmap(jax.grad(lambda x, w, f=f: f(x, w).sum(), (0, 1))) for f in pair)
    for a, b in zip(ours(*batch), plain(*batch)):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_a_collective_in_body_and_grad_sees_the_axis_of_the_batch(mode):
    @pb.custom_gradient
    def total(x):
        return jax.lax.psum(x, "i"), lambda dy: jax.lax.psum(dy, "i")

    x, weights = jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0, 100.0])

    def weighed(x):
        return (jax.vmap(total, axis_name="i")(x) * weights).sum()

    assert mode(jax.grad(weighed))(x).tolist() == [111.0, 111.0, 111.0]
    assert float(mode(lambda x: jax.jvp(weighed, (x,), (weights,))[1])(x)) == 111.0 * 111.0


def test_the_body_stands_once_in_a_compiled_gradient():
    @pb.custom_gradient
    def f(x):
        y = jnp.tanh(x)
        return y, lambda dy: dy * (1 - y * y)

    program = str(jax.make_jaxpr(jax.grad(lambda x: f(x).sum()))(jnp.ones(3)))
    assert program.count("tanh") == 1


def test_an_effect_in_body_and_grad_happens_in_a_compiled_program():
    seen = []

    @pb.custom_gradient
    def f(x):
        jax.debug.callback(lambda v: seen.append(("body", float(v))), x)

        def grad(dy):
            jax.debug.callback(lambda v: seen.append(("grad", float(v))), dy)
            return 2 * dy

        return 2 * x, grad

    jax.jit(jax.grad(f))(3.0)
    jax.effects_barrier()
    assert sorted(seen) == [("body", 3.0), ("grad", 1.0)]
    assert float(jax.jit(f)(2.0)) == 4.0


@pytest.mark.parametrize("constant", [False, True], ids=["both arguments", "one argument"])
def test_a_call_that_is_differentiated_in_a_program_runs_the_users_code_once(constant):
    runs = []

    @pb.custom_gradient
    def product(x, y):
        runs.append("body")

        def grad(dz):
            runs.append("grad")
            return dz * y, dz * x

        return x * y, grad

    jax.jit(jax.grad(product, argnums=0 if constant else (0, 1))).lower(2.0, 3.0)
    assert runs == ["body", "grad"]


def test_an_array_that_is_known_stays_known_where_others_are_compiled():
    @pb.custom_gradient
    def power(x, n):
        n = int(n)
        return x**n, lambda dy: (dy * n * x ** (n - 1), None)

    known = jnp.asarray(3)
    assert float(jax.jit(jax.grad(lambda x: power(x, known)))(2.0)) == pytest.approx(12.0)


def test_a_branch_on_an_array_that_is_known_works_in_a_batch():
    @pb.custom_gradient
    def power(x, n):
        k = 3 if n > 2 else 2
        return x**k, lambda dy: (dy * k * x ** (k - 1), None)

    known = jnp.asarray(3)
    got = jax.vmap(jax.grad(lambda x: power(x, known)))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(got, [3.0, 12.0])


@pytest.mark.parametrize("order", [1, 2])
def test_a_trace_leaves_nothing_of_itself_behind(order):
    @pb.custom_gradient
    def sine(x):
        return jnp.sin(x), lambda dy: dy * jnp.cos(x)

    f = functools.reduce(lambda f, _: jax.grad(f), range(order), sine)
    with jax.checking_leaks():
        assert float(jax.jit(f)(0.5)) == pytest.approx(float([jnp.cos(0.5), -jnp.sin(0.5)][order - 1]))


def test_the_checks_that_jax_makes_of_itself_hold():
    @pb.custom_gradient
    def product(x, y):
        return x * y, lambda dz: (dz * y, dz * x)

    with jax.enable_checks(True):
        assert float(jax.jit(jax.grad(product))(2.0, 3.0)) == 3.0
