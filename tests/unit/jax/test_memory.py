"""Nothing of a call outlives it: no array of an eager step, no traced array of a program."""

import gc
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from leaks import gain

import pullback as pb


@pb.custom_gradient
def softplus(x):
    e = jnp.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return jnp.log(1 + e), grad


@pb.custom_gradient(order=1)
def first_order(x):
    return 2 * x, lambda dy: 2 * dy


@pb.custom_gradient
def second_order(x):
    def grad(dy):
        return dy * 2 * x, lambda ddx: 2 * ddx * dy

    return x * x, grad


@pb.external
def foreign(x):
    return 2 * x


@foreign.pullback
def _(dy, x):
    return 2 * dy


RULES = {
    "residual": softplus,
    "order=1": first_order,
    "gradgrad": second_order,
    "external": foreign,
    "elementwise": pb.elementwise(jnp.square, lambda x: 2 * x),
    "straight_through": pb.straight_through(jnp.round),
    "surrogate": pb.surrogate(jnp.sign, like=jnp.tanh),
    "clip_gradient": lambda x: pb.clip_gradient(x, norm=1.0),
    "with_gradient": pb.with_gradient(jnp.tanh, lambda dy, x, output: dy * (1 - output**2)),
}


@pb.custom_gradient
def two_outputs(x, y):
    def grad(da, db):
        return da * y + db, da * x - db

    return x * y, x - y, grad


@pb.custom_gradient
def of_a_dict(weights):
    def grad(dy):
        return {"a": dy * weights["b"], "b": dy * weights["a"]}

    return weights["a"] * weights["b"], grad


@pb.custom_gradient
def pushed(x):
    return x * x, lambda dy: 2 * dy * x


@pushed.pushforward
def _(dx, x):
    return 2 * dx * x


def in_the_body(w):
    @pb.custom_gradient
    def rule(x):
        return x * w, lambda dy: 3 * dy

    return rule


def in_grad(w):
    return pb.custom_gradient(lambda x: (3 * x, lambda dy: dy * w))


def in_a_first_order(w):
    return pb.custom_gradient(lambda x: (x * w, lambda dy: dy * w), order=1)


def in_gradgrad(w):
    @pb.custom_gradient
    def rule(x):
        def grad(dy):
            return 2 * dy * x * w, lambda ddx: 2 * ddx * dy * w

        return x * x * w, grad

    return rule


def in_a_pushforward(w):
    rule = in_grad(w)
    rule.pushforward(lambda dx, x: dx * w)
    return rule


def closing(make):
    """Define a rule inside of the function that is traced, around an array of that function."""
    return lambda x: make(jax.lax.stop_gradient(2 * x))(x)


PROGRAMS = RULES | {
    "two outputs": lambda x: sum(two_outputs(x, 2 * x)),
    "a dict": lambda x: of_a_dict({"a": x, "b": 2 * x}),
    "pushforward": pushed,
    "elementwise, of its output": pb.elementwise(jnp.exp, lambda x, output: output),
    "override": pb.override(lambda x: 2 * jnp.tanh(x), {jnp.tanh: lambda dy, x: dy * x}),
    "override, of its output": pb.override(
        lambda x: 2 * jnp.tanh(x), {jnp.tanh: lambda dy, output: dy * (1 - output**2)}
    ),
    "closure of the body": closing(in_the_body),
    "closure of grad": closing(in_grad),
    "closure of order=1": closing(in_a_first_order),
    "closure of gradgrad": closing(in_gradgrad),
    "closure of a pushforward": closing(in_a_pushforward),
    "closure of a partial": closing(lambda w: pb.elementwise(lambda x: x * w, lambda x: w)),
    "closure of a replaced function": closing(lambda w: pb.straight_through(lambda x: jnp.round(x * w))),
}


REVERSE_ONLY = {"clip_gradient", "external"}


def alive():
    gc.collect()
    return len(jax.live_arrays())


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_eager_steps_keep_no_array(rule):
    x = jnp.ones([512, 512], jnp.float32)  # 1 MB

    def step(scale):
        _, pull = jax.vjp(rule, x * scale)
        return pull(x)[0]

    def steps(count=80):
        for i in range(count):
            step(float(i))

    steps(3)
    counted = alive()
    assert gain(steps, 32e6) < 32e6  # an array kept in every step would be 80 MB
    assert alive() == counted


def test_a_rule_that_is_gone_keeps_no_array_that_it_closed_over():
    x = jnp.ones(3)

    def step(i):
        w = x * i
        rule = pb.elementwise(lambda x: x * w, lambda x, output: w)
        jax.grad(lambda x: rule(x).sum())(x)
        jax.jvp(rule, (x,), (x,))

    step(1.0)
    before = alive()
    for i in range(5):
        step(float(i))
    assert alive() == before


@pytest.mark.parametrize("rule", [softplus, second_order], ids=["residual", "gradgrad"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        lambda f: lambda x: jax.linearize(f, x)[1](x),
        lambda f: lambda x: jax.vmap(jax.grad(lambda x: f(x).sum()))(x),
        lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum()),
        lambda f: jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum()),
    ],
    ids=["jvp", "linearize", "vmap of grad", "grad of vmap", "grad of grad"],
)
def test_eager_steps_of_every_kind_keep_no_array(transform, rule):
    step = transform(rule)
    for i in range(3):
        step(jnp.full([4, 3], 0.1 * i))
    before = alive()
    for i in range(20):
        step(jnp.full([4, 3], 0.1 * i))
    assert alive() == before


def repeated(f):
    return lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "around", [lambda f: f, jax.vmap, jax.checkpoint, repeated], ids=["plain", "vmap", "checkpoint", "scan"]
)
def test_a_program_keeps_no_traced_array(around, name):
    f = around(PROGRAMS[name])

    def gradient(x):
        return jax.grad(lambda x: f(x).sum())(x)

    def tangent(x):
        return jax.jvp(f, (x,), (x,))[1]

    derivatives = [gradient] if name in REVERSE_ONLY else [gradient, tangent]
    x = jnp.linspace(0.1, 1.0, 6).reshape(3, 2)
    with jax.checking_leaks():
        found = jax.jit(lambda x: [derivative(x) for derivative in derivatives])(x)
        jax.jit(f).trace(x)  # what leaks does so while it is traced
        jax.vmap(gradient)(x)
        pushed = [derivative(x) for derivative in derivatives[1:]]
    for mine, expected in zip(found, [gradient(x), *pushed], strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-6)


@pb.custom_gradient
def failing(x):
    y = jnp.sin(x)

    def grad(dy):
        raise KeyError("mine")

    return y, grad


def test_a_grad_that_failed_while_it_was_traced_keeps_no_traced_array():
    with jax.checking_leaks():
        got = jax.jit(jax.grad(lambda x: jax.lax.stop_gradient(failing(x)) * x))(0.5)
    assert float(got) == pytest.approx(float(jnp.sin(0.5)))


def test_its_error_still_says_where_it_was_raised():
    with pytest.raises(KeyError, match="mine") as caught:
        jax.jit(jax.grad(failing))(0.5)
    assert 'raise KeyError("mine")' in "".join(traceback.format_exception(caught.value))


def test_a_grad_that_calls_its_rule_keeps_no_traced_array():
    def scaled(x):
        w = x * 2

        @pb.custom_gradient
        def by_w(y):
            return y * w, lambda dy: by_w(dy)

        return by_w(x)

    with jax.checking_leaks():
        assert float(jax.jit(scaled)(0.5)) == pytest.approx(0.5)
