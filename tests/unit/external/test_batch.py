"""Batches: one element after another, or one call; with their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from frameworks import batch

import pullback as pb
from pullback.errors import ExternalError, ExternalOutputError

X = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
Y = np.array([0.5, 1.0, 2.0])
FRAMEWORKS = ["tensorflow", "jax", "torch"]


def raised(framework, kind):
    """A map of TensorFlow is a graph, whose errors have a class of their own, with our text in it."""
    return tf.errors.OpError if framework == "tensorflow" else kind


def one_by_one(**options):
    shapes = []

    def f(x, y):
        shapes.append(x.shape)
        return x**2 * y

    g = pb.external(f, output=lambda x: x, **options)
    g.pullback(lambda dy, x, y: (2 * x * y * dy, x**2 * dy))
    return g, shapes


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(("batched", "calls"), [(False, 4), (True, 1)])
def test_a_map_is_as_many_calls_as_it_says(framework, batched, calls):
    f, shapes = one_by_one(batched=batched)
    result = batch(framework, f, X, Y, axes=(0, None))
    np.testing.assert_allclose(result, X**2 * Y)
    assert shapes == ([(4, 3)] if batched else [(3,)] * 4)
    assert len(shapes) == calls


@pytest.mark.parametrize("batched", [False, True])
def test_every_array_of_a_batched_call_has_the_axis(batched):
    seen = []
    f = pb.external(lambda x, y: seen.append(y.shape) or x * y, output=lambda x: x, batched=batched)
    batch("jax", f, X, Y, axes=(0, None))
    assert set(seen) == ({(4, 3)} if batched else {(3,)})


@pytest.mark.parametrize("batched", [False, True])
def test_the_gradient_of_a_map(batched):
    f, _ = one_by_one(batched=batched)
    with jax.enable_x64(True):
        dx, dy = jax.grad(lambda x, y: jax.vmap(f, (0, None))(x, y).sum(), (0, 1))(
            jnp.asarray(X), jnp.asarray(Y)
        )
    np.testing.assert_allclose(dx, 2 * X * Y)
    np.testing.assert_allclose(dy, (X**2).sum(0))


@pytest.mark.parametrize("batched", [False, True])
def test_a_jacobian_of_a_tape_is_a_map_of_the_pullback(batched):
    f, _ = one_by_one(batched=batched)
    x, y = tf.constant(X[0]), tf.constant(Y)
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = f(x, y)
    np.testing.assert_allclose(tape.jacobian(z, x), np.diag(2 * X[0] * Y))


@pytest.mark.parametrize("batched", [False, True])
def test_map_fn_works(batched):
    f, _ = one_by_one(batched=batched)
    np.testing.assert_allclose(tf.map_fn(lambda x: f(x, tf.constant(Y)), tf.constant(X)), X**2 * Y)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("scheme", ["central", "forward", "complex-step", "spsa"])
def test_differences_of_a_map(batched, scheme):
    f = pb.external(lambda x: np.sin(x), output=lambda x: x, gradient=scheme, batched=batched)
    with jax.enable_x64(True):
        mapped = jax.grad(lambda x: jax.vmap(f)(x).sum())(jnp.asarray(X))
        alone = [jax.grad(lambda x: f(x).sum())(jnp.asarray(x)) for x in X]
    np.testing.assert_allclose(mapped, np.stack(alone), rtol=1e-6)
    if scheme != "spsa":
        np.testing.assert_allclose(mapped, np.cos(X), rtol=1e-6)


def test_differences_of_a_batched_function_are_one_call():
    shapes = []
    f = pb.external(
        lambda x: shapes.append(x.shape) or np.sin(x),
        output=lambda x: x,
        gradient="central",
        batched=True,
        step=1e-5,
    )
    x = tf.constant(Y)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), np.cos(Y), rtol=1e-8)
    assert shapes == [(3,), (6, 3)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_error_names_the_element(framework):
    def f(x):
        if x[0] > 0.2:
            raise ValueError("too large")
        return x

    with pytest.raises(raised(framework, ExternalError), match="element 3 of 4 of the batch"):
        batch(framework, pb.external(f, output=lambda x: x), X, axes=(0,))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_wrong_shape_names_the_element(framework):
    f = pb.external(lambda x: x if x[0] < 0.2 else x[:1], output=lambda x: x)
    with pytest.raises(raised(framework, ExternalOutputError), match="element 3 of 4 of the batch"):
        batch(framework, f, X, axes=(0,))


def test_a_batched_function_that_loses_the_axis_is_told_so():
    f = pb.external(lambda x: x[..., 0], output=lambda x: x, batched=True)
    with pytest.raises(ExternalOutputError, match="behind the batch axis of 4"):
        batch("jax", f, X, axes=(0,))


@pytest.mark.parametrize("batched", [False, True])
def test_a_map_of_a_map(batched):
    f, _ = one_by_one(batched=batched)
    with jax.enable_x64(True):
        result = jax.vmap(jax.vmap(f, (0, None)), (None, 0))(jnp.asarray(X), jnp.asarray(np.stack([Y, -Y])))
    np.testing.assert_allclose(result, np.stack([X**2 * Y, -(X**2) * Y]))


@pytest.mark.parametrize("batched", [False, True])
def test_a_batch_of_nothing_runs_nothing(batched):
    calls = []
    f = pb.external(
        lambda x: calls.append(1) or x.sum(), output=lambda x: x.replace(shape=()), batched=batched
    )
    with jax.enable_x64(True):
        assert jax.vmap(f)(jnp.zeros((0, 3))).shape == (0,)
    assert not calls


@pytest.mark.parametrize("batched", [False, True])
def test_an_undeclared_output_of_a_map(batched):
    f = pb.external(lambda x: x * 2, batched=batched)
    np.testing.assert_allclose(torch.func.vmap(f)(torch.tensor(X)), 2 * X)
