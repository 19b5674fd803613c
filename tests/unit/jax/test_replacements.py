"""Every replacement on JAX arrays, in both modes, compiled and not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb
from pullback.errors import ForwardModeError, OptionError

X = jnp.array([0.5, -1.5, 2.5], jnp.float32)
W = jnp.array([1.0, 2.0, 3.0], jnp.float32)


def sigmoid_slope(x):
    return jax.nn.sigmoid(x) * (1 - jax.nn.sigmoid(x))


# the replacement, its value, the gradient of Σ w·f
LINEAR = {
    "surrogate": (
        pb.surrogate(lambda v: (v > 0).astype(v.dtype), like=jax.nn.sigmoid),
        lambda x: (x > 0).astype(x.dtype),
        lambda x, w: w * sigmoid_slope(x),
    ),
    "straight_through": (
        pb.straight_through(lambda x: jnp.round(x * 8) / 8), lambda x: jnp.round(x * 8) / 8, lambda x, w: w
    ),
    "round": (pb.round, jnp.round, lambda x, w: w),
    "sign": (pb.sign, jnp.sign, None),
    "heaviside": (pb.heaviside, lambda x: (x > 0).astype(x.dtype), None),
    "scale": (lambda x: pb.scale_gradient(x, 2.0), lambda x: x, lambda x, w: 2 * w),
    "reverse": (pb.reverse_gradient, lambda x: x, lambda x, w: -w),
    "stop": (pb.stop_gradient, lambda x: x, lambda x, w: 0 * w),
    "map": (lambda x: pb.map_gradient(x, lambda d: 3 * d), lambda x: x, lambda x, w: 3 * w),
    "argmax": (
        pb.argmax_one_hot,
        lambda x: jax.nn.one_hot(jnp.argmax(x), 3, dtype=x.dtype),
        lambda x, w: jax.grad(lambda x: (w * jax.nn.softmax(x)).sum())(x),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("f", "value", "gradient"), LINEAR.values(), ids=LINEAR.keys())
def test_a_linear_replacement_has_its_value_and_one_gradient_in_both_modes(f, value, gradient, mode):
    np.testing.assert_allclose(mode(f)(X), value(X))

    def loss(x):
        return (f(x) * W).sum()

    reverse = mode(jax.grad(loss))(X)
    np.testing.assert_allclose(mode(jax.jacfwd(loss))(X), reverse, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.jit(loss))(X), reverse, rtol=1e-5, atol=1e-6)
    batched = jax.vmap(jax.grad(loss))(jnp.stack([X, X]))
    np.testing.assert_allclose(batched, jnp.stack([reverse, reverse]), rtol=1e-5, atol=1e-6)
    if gradient is not None:
        np.testing.assert_allclose(reverse, gradient(X, W), rtol=1e-5, atol=1e-6)


# the replacement, what reaches x for a cotangent w
NOT_LINEAR = {
    "clip by value": (lambda x: pb.clip_gradient(x, value=1.5), lambda w: jnp.clip(w, -1.5, 1.5)),
    "clip by norm": (lambda x: pb.clip_gradient(x, norm=1.0), lambda w: w / jnp.linalg.norm(w)),
    "finite": (pb.finite_gradient, lambda w: w),
    "map": (lambda x: pb.map_gradient(x, jnp.sign), jnp.sign),
}


@pytest.mark.parametrize(("f", "gradient"), NOT_LINEAR.values(), ids=NOT_LINEAR.keys())
def test_a_replacement_that_is_not_linear_is_reverse_only(f, gradient, mode):
    np.testing.assert_allclose(mode(jax.grad(lambda x: (f(x) * W).sum()))(X), gradient(W), rtol=1e-6)
    with pytest.raises(ForwardModeError):
        mode(lambda x: jax.jvp(f, (x,), (x,)))(X)


def test_with_gradient_uses_output_at_every_order(mode):
    f = pb.with_gradient(jnp.tanh, lambda dy, x, output: 2 * dy * (1 - output**2))
    y = jnp.tanh(0.5)
    slope = 2 * (1 - y**2)
    assert float(mode(jax.grad(f))(0.5)) == pytest.approx(float(slope), rel=1e-6)
    assert float(mode(jax.grad(jax.grad(f)))(0.5)) == pytest.approx(float(-4 * y * slope), rel=1e-6)
    third = -4 * slope * slope - 4 * y * (-4 * y * slope)
    assert float(mode(jax.jacfwd(jax.grad(jax.grad(f))))(0.5)) == pytest.approx(float(third), rel=1e-6)


def test_finite_gradient_counts_in_an_array_or_by_a_function(mode):
    lost, told = np.zeros((), int), []
    for counter in (lost, told.append):

        def roots(x, counter=counter):
            return jnp.sqrt(pb.finite_gradient(x, counter=counter)).sum()

        got = mode(jax.grad(roots))(jnp.zeros(3))
        assert got.tolist() == [0.0, 0.0, 0.0]
    jax.effects_barrier()
    assert int(lost) == 3
    assert told == [3]


def test_finite_gradient_says_it_in_eager_mode(capsys):
    jax.grad(lambda x: jnp.sqrt(pb.finite_gradient(x, label="root")).sum())(jnp.array([0.0, 1.0]))
    assert "the gradient of root to zero: 1 of 2 values" in capsys.readouterr().err


def test_a_counter_that_cannot_count_is_refused():
    with pytest.raises(OptionError, match=r"np\.zeros"):
        jax.grad(lambda x: pb.finite_gradient(x, counter=7).sum())(jnp.ones(2))
