"""Arrays that reach a body through a closure: lifted, or refused by name when they are differentiated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb
from pullback.errors import CapturedTensorError

X = [0.5, -1.5, 2.5]


def scaled_by(w):
    @pb.custom_gradient
    def scaled(x):
        return x * w, lambda dy: dy * w

    return scaled


def only_in_grad(w):
    @pb.custom_gradient
    def scaled(x):
        return 2 * x, lambda dy: dy * w

    return scaled


class Layer:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        @pb.custom_gradient
        def scaled(x):
            return x * self.w, lambda dy: dy * self.w

        return scaled(x)


DIFFERENTIATED = {
    "eager": jax.grad,
    "compiled": lambda f: jax.jit(jax.grad(f)),
    "compiled inside": lambda f: jax.grad(jax.jit(f)),
    "forward": jax.jacfwd,
    "batched": lambda f: jax.vmap(jax.grad(f), axis_size=2, in_axes=None),
}


@pytest.mark.parametrize("differentiated", DIFFERENTIATED.values(), ids=DIFFERENTIATED.keys())
@pytest.mark.parametrize(
    ("make", "name"), [(scaled_by, "`w`"), (Layer, "`self.w`")], ids=["a closure", "an attribute"]
)
def test_a_captured_array_that_is_differentiated_is_refused_by_name(differentiated, make, name):
    x = jnp.array(X)
    with pytest.raises(CapturedTensorError) as raised:
        differentiated(lambda w: make(w)(x * w).sum())(2.0)
    text = str(raised.value)
    assert f"the body uses {name}, which is being differentiated and is not an argument" in text
    assert "its gradient would silently be None" in text
    assert f"jax.lax.stop_gradient({name.strip('`')}) in the body" in text


@pytest.mark.parametrize("differentiated", [jax.grad, lambda f: jax.jit(jax.grad(f))], ids=["eager", "jit"])
def test_a_captured_array_that_only_grad_uses_is_refused_too(differentiated):
    with pytest.raises(CapturedTensorError, match="`w`"):
        differentiated(lambda w: only_in_grad(w)(jnp.array(X) * w).sum())(2.0)


def test_arguments_that_are_numbers_hide_no_captured_array():
    with pytest.raises(CapturedTensorError, match="`w`"):
        jax.grad(lambda w: scaled_by(w)(jnp.array(X)).sum())(2.0)


CONSTANT = {
    "compiled": lambda make: jax.jit(lambda x, w: jax.grad(lambda x: make(w)(x).sum())(x)),
    "compiled inside": lambda make: jax.grad(jax.jit(lambda x, w: make(w)(x).sum())),
    "forward": lambda make: jax.jit(lambda x, w: jax.jvp(make(w), (x,), (jnp.ones_like(x),))[1]),
    "a batch": lambda make: (
        lambda x, w: jax.vmap(lambda w: jax.grad(lambda x: make(w)(x).sum())(x))(w[None])[0]
    ),
    "a batch inside": lambda make: jax.grad(lambda x, w: jax.vmap(lambda w: make(w)(x).sum())(w[None])[0]),
    "a loop": lambda make: jax.grad(
        lambda x, w: jax.lax.scan(lambda c, w: (make(w)(c), None), x, w[None])[0].sum()
    ),
    "eager": lambda make: jax.grad(lambda x, w: make(w)(x).sum()),
}


@pytest.mark.parametrize("around", CONSTANT.values(), ids=CONSTANT.keys())
@pytest.mark.parametrize("make", [scaled_by, only_in_grad, Layer])
def test_a_captured_constant_of_the_program_is_lifted(around, make):
    got = around(make)(jnp.array(X), jnp.asarray(3.0))
    np.testing.assert_allclose(got, [3.0] * 3)


@pytest.mark.parametrize("differentiated", [jax.grad, lambda f: jax.jit(jax.grad(f))], ids=["eager", "jit"])
def test_a_stopped_array_may_be_captured(differentiated):
    def stopped(w):
        @pb.custom_gradient
        def scaled(x):
            return x * jax.lax.stop_gradient(w), lambda dy: dy * jax.lax.stop_gradient(w)

        return scaled

    x = jnp.array(X)
    inside = differentiated(lambda w: stopped(w)(x * w).sum())(2.0)
    outside = differentiated(lambda w: scaled_by(jax.lax.stop_gradient(w))(x * w).sum())(2.0)
    assert float(inside) == float(outside) == pytest.approx(2 * sum(X))


def test_a_gradient_that_is_given_to_a_function_may_close_over_a_constant():
    def f(x, c):
        return pb.with_gradient(jnp.tanh, lambda dy, x: dy * c)(x).sum()

    for differentiated in (jax.grad(f), jax.grad(jax.jit(f)), jax.jit(jax.grad(f))):
        assert differentiated(jnp.array(X), 3.0).tolist() == [3.0, 3.0, 3.0]


# ── further in than a search by name goes ────────────────────────────────────────────────────────────────


def scaled_out_of_sight(w):
    kept = [[[[w]]]]

    @pb.custom_gradient
    def scaled(x, y):
        w = kept[0][0][0][0]
        return x * y * w, lambda dz: (dz * y * w, dz * x * w)

    return scaled


@pytest.mark.parametrize("differentiated", DIFFERENTIATED.values(), ids=DIFFERENTIATED.keys())
@pytest.mark.parametrize("other", [lambda w: w, lambda w: 1.0], ids=["with it", "alone"])
def test_an_array_out_of_sight_that_is_differentiated_is_refused(differentiated, other):
    x = jnp.array(X)
    with pytest.raises(CapturedTensorError, match="which is being differentiated and is not an argument"):
        differentiated(lambda w: scaled_out_of_sight(w)(x * w, x * other(w)).sum())(2.0)


SURROUNDINGS = {
    "compiled": lambda f: f,
    "compiled twice": lambda f: lambda x: jax.jit(lambda c: f(x) * c)(1.0),
    "a batch": lambda f: lambda x: jax.vmap(lambda c: f(x) * c)(jnp.ones(2)).mean(),
    "a loop": lambda f: lambda x: jax.lax.scan(lambda c, _: (f(x) + 0 * c, None), 0.0, length=2)[0],
}


@pytest.mark.parametrize("surrounding", SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
def test_an_array_out_of_sight_that_is_constant_works(surrounding):
    def gradient(x, w):
        scaled = scaled_out_of_sight(w)
        return jax.grad(surrounding(lambda x: scaled(x, x).sum()))(x)

    x = jnp.array(X)
    np.testing.assert_allclose(jax.jit(gradient)(x, 3.0), 6 * x, rtol=1e-6)


def pushing(w):
    rule = scaled_by(w)
    rule.pushforward(lambda dx, x: dx * w)
    return rule


def only_in_the_pushforward(w):
    @pb.custom_gradient
    def tripled(x):
        return 3 * x, lambda dy: 3 * dy

    tripled.pushforward(lambda dx, x: dx * w)
    return tripled


FORWARD = {
    "transposed": scaled_by,
    "a pushforward": pushing,
    "only the pushforward": only_in_the_pushforward,
    "elementwise": lambda w: pb.elementwise(lambda x: x * w, lambda x: w),
    "only a partial": lambda w: pb.elementwise(lambda x: 3 * x, lambda x: w),
}


@pytest.mark.parametrize("make", FORWARD.values(), ids=FORWARD.keys())
@pytest.mark.parametrize(
    "push",
    [
        lambda f, x: jax.jit(lambda x: jax.jvp(f, (x,), (x,))[1])(x),
        lambda f, x: jax.vmap(lambda x: jax.jvp(f, (x,), (x,))[1])(x),
        lambda f, x: jax.jvp(jax.jit(f), (x,), (x,))[1],
        lambda f, x: jax.jvp(jax.vmap(f), (x,), (x,))[1],
        lambda f, x: jax.linearize(jax.jit(f), x)[1](x),
        lambda f, x: jax.jit(jax.jacfwd(f))(x) @ x,
    ],
    ids=["jit of jvp", "vmap of jvp", "jvp of jit", "jvp of vmap", "linearize of jit", "jacfwd"],
)
def test_tangents_are_pushed_past_a_captured_constant(push, make):
    x = jnp.array(X)
    np.testing.assert_allclose(push(lambda x: make(jax.lax.stop_gradient(2 * x))(x), x), 2 * x * x)
