"""Second derivatives: refused by `order=1`, given by `gradgrad`, and by the rule wherever a value is used."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb
from pullback.errors import SecondOrderError

X = [0.5, -1.5, 2.5]

SECOND = {
    "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(f)),
    "forward over reverse": jax.hessian,
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "reverse over compiled": lambda f: jax.jacrev(jax.jit(jax.jacrev(f))),
    "reverse over a loop": lambda f: jax.jacrev(
        jax.jacrev(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0])
    ),
}


@pb.custom_gradient(order=1)
def once(x):
    kept = jax.lax.stop_gradient(3 * x * x)
    return x**3, lambda dy: dy * kept


@pb.custom_gradient
def cube(x):
    def grad(dy):
        def gradgrad(ddx):
            return ddx * dy * 6 * x

        return dy * jax.lax.stop_gradient(3 * x * x), gradgrad

    return x**3, grad


@pb.custom_gradient(differs="seven")
def seven(x):
    return jnp.tanh(x), lambda dy: 7 * dy


@pytest.mark.parametrize("second", SECOND.values(), ids=SECOND.keys())
def test_order_1_refuses_a_second_derivative(second, mode):
    with pytest.raises(SecondOrderError, match="first derivatives only"):
        mode(second(once))(jnp.array(X))


def test_order_1_gives_first_derivatives_in_both_modes(mode):
    x = jnp.array(X)
    want = np.diag(3 * x**2)
    np.testing.assert_allclose(mode(jax.jacrev(once))(x), want)
    np.testing.assert_allclose(mode(jax.jacfwd(once))(x), want)


def test_order_1_lets_the_value_of_a_compiled_gradient_be_differentiated():
    value = jax.jit(jax.value_and_grad(lambda x: once(x).sum()))
    np.testing.assert_allclose(jax.grad(lambda x: value(x)[0])(jnp.array(X)), 3 * jnp.array(X) ** 2)


@pytest.mark.parametrize("second", SECOND.values(), ids=SECOND.keys())
def test_gradgrad_gives_the_second_derivative(second, mode):
    x = jnp.array(X)
    got = mode(second(cube))(x)
    want = np.zeros((3, 3, 3))
    want[np.arange(3), np.arange(3), np.arange(3)] = 6 * x
    np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("third", [jax.jacfwd, jax.jacrev])
def test_gradgrad_is_differentiated_for_the_third(third, mode):
    assert float(mode(third(jax.grad(jax.grad(cube))))(2.0)) == pytest.approx(6.0)


@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
def test_a_value_is_differentiated_by_its_rule_around_another_derivative(inner, outer, mode):
    # d²/dx² of seven(x)² with seven′ = 7 and seven″ = 0 is 2·7·7
    got = mode(outer(inner(lambda x: seven(x) ** 2)))(0.5)
    assert float(got) == pytest.approx(98.0)


@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
def test_a_loop_keeps_the_rule_of_a_value_that_the_inner_derivative_does_not_move(inner, outer):
    def looped(x, w):
        return jax.lax.scan(lambda c, _: ((c[0] * seven(c[1]), seven(c[1])), None), (x, w), None, length=2)[
            0
        ][0]

    def unrolled(x, w):
        return x * seven(w) * seven(seven(w))

    got, want = (float(outer(inner(f, 0), 1)(0.3, 0.5)) for f in (looped, unrolled))
    assert got == pytest.approx(want)


def test_a_branch_in_the_body_works_at_every_order_on_numbers():
    @pb.custom_gradient
    def leaky(x):
        slope = 1.0 if x > 0 else 0.1
        return slope * x**2, lambda dy: dy * slope * 2 * x

    assert float(jax.grad(leaky)(-1.0)) == pytest.approx(-0.2)
    assert float(jax.grad(jax.grad(leaky))(-1.0)) == pytest.approx(0.2)
    assert float(jax.jacfwd(jax.jacfwd(leaky))(2.0)) == pytest.approx(2.0)


class Counter:
    """A state that every run of a body changes."""

    runs = 0

    def scale(self):
        self.runs += 1
        return float(self.runs)


@pytest.mark.parametrize("explicit", [False, True], ids=["derived", "gradgrad"])
@pytest.mark.parametrize("late", [False, True], ids=["at once", "later"])
def test_every_order_comes_from_one_run_of_the_body(explicit, late):
    state = Counter()

    @pb.custom_gradient
    def f(x):
        scale = state.scale()

        def grad(dy):
            def gradgrad(ddx):
                return -scale * dy * jnp.sin(x) * ddx

            dx = scale * dy * jnp.cos(x)
            return (dx, gradgrad) if explicit else dx

        return scale * jnp.sin(x), grad

    def gradient(x):
        _, pull = jax.vjp(f, x)
        state.runs += 10 * late  # whoever runs the body now sees another state
        return pull(jnp.ones_like(x))[0]

    x, ones = jnp.array([0.3, 0.7]), jnp.ones(2)
    for derivatives in (
        lambda: (gradient(x), None),
        lambda: jax.jvp(gradient, (x,), (ones,)),
        lambda: jax.vjp(gradient, x),
        lambda: (jax.linearize(f, x)[1](ones), None),
    ):
        state.runs = 0
        first, second = derivatives()
        np.testing.assert_allclose(first, jnp.cos(x))
        if second is not None:
            second = second(ones)[0] if callable(second) else second
            np.testing.assert_allclose(second, -jnp.sin(x))
