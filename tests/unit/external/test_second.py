"""Second derivatives: from a pullback that is external too, by differences when asked, refused otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb
from pullback.errors import ExternalGradientError, SecondOrderError

X = np.array([0.5, 1.5, -1.0])


def value(x):
    return np.array([x[0] ** 2 * x[1], np.sin(x[2]) * x[0]])


def pull(dy, x):
    return np.array(
        [2 * x[0] * x[1] * dy[0] + np.sin(x[2]) * dy[1], x[0] ** 2 * dy[0], np.cos(x[2]) * x[0] * dy[1]]
    )


def native(x):
    return jnp.stack([x[0] ** 2 * x[1], jnp.sin(x[2]) * x[0]])


def loss_hessian(f, framework):
    """The Hessian of Σ f², which needs both derivatives of f, and both of the pullback's arguments."""
    if framework == "jax":
        with jax.enable_x64(True):
            return jax.jacrev(jax.grad(lambda x: (f(x) ** 2).sum()))(jnp.asarray(X))
    if framework == "jax, forward over reverse":
        with jax.enable_x64(True):
            return jax.hessian(lambda x: (f(x) ** 2).sum())(jnp.asarray(X))
    if framework == "torch":
        return torch.autograd.functional.hessian(lambda x: (f(x) ** 2).sum(), torch.tensor(X)).numpy()
    run = tf.function(f) if framework == "tensorflow, compiled" else f
    x = tf.constant(X)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(run(x) ** 2)
        dx = inner.gradient(y, x)
    return outer.jacobian(dx, x).numpy()


with jax.enable_x64(True):
    EXACT = np.asarray(jax.hessian(lambda x: (native(x) ** 2).sum())(jnp.asarray(X)))
PLACES = ["tensorflow", "tensorflow, compiled", "jax", "jax, forward over reverse", "torch"]


def by_differences(**options):
    f = pb.external(value, output=lambda x: x.replace(shape=(2,)), second="central", **options)
    if not options:
        f.pullback(pull)
    return f


def jacobian_of(x):
    return np.stack([pull(dy, x) for dy in np.eye(2)])


@pytest.mark.parametrize("framework", PLACES)
@pytest.mark.parametrize(
    ("options", "accuracy"),
    [
        ({}, 1e-7),
        ({"jacobian": jacobian_of}, 1e-7),
        ({"gradient": "complex-step"}, 1e-7),
        ({"gradient": "central"}, 1e-3),
    ],
    ids=["pullback", "jacobian", "complex-step", "central"],
)
def test_differences_of_the_gradient(framework, options, accuracy):
    found = loss_hessian(by_differences(**options), framework)
    np.testing.assert_allclose(found, EXACT, rtol=accuracy, atol=accuracy)


def test_their_cost_does_not_grow_with_the_size():
    calls = []
    f = pb.external(lambda x: calls.append("f") or x**3, output=lambda x: x, second="central")
    f.pullback(lambda dy, x: calls.append("pull") or 3 * x**2 * dy)
    x = tf.constant(np.linspace(1.0, 2.0, 1000))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        dx = inner.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(dx, x), 6 * x, rtol=1e-8)
    assert calls.count("pull") <= 1 + 1 + 2
    assert calls.count("f") <= 1 + 2 + 2 + 12


@pytest.mark.parametrize("framework", ["tensorflow", "tensorflow, compiled", "jax", "torch"])
def test_a_pullback_that_is_external_too(framework):
    f = pb.external(value, output=lambda x: x.replace(shape=(2,)))

    @f.pullback
    @pb.external(output=lambda dy, x: x)
    def first(dy, x):
        return pull(dy, x)

    @first.pullback
    def _(ddx, dy, x):
        hessian = np.array(
            [
                [2 * x[1] * dy[0], 2 * x[0] * dy[0], np.cos(x[2]) * dy[1]],
                [2 * x[0] * dy[0], 0.0, 0.0],
                [np.cos(x[2]) * dy[1], 0.0, -np.sin(x[2]) * x[0] * dy[1]],
            ]
        )
        return jacobian_of(x) @ ddx, hessian @ ddx

    np.testing.assert_allclose(loss_hessian(f, framework), EXACT, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_the_output_in_such_a_pullback_depends_on_the_arguments(framework):
    f = pb.external(np.exp, output=lambda x: x)

    @f.pullback
    @pb.external(output=lambda dy, output: dy)
    def first(dy, output):
        return dy * output

    @first.pullback
    def _(ddx, dy, output):
        return ddx * output, ddx * dy

    found = loss_hessian(f, framework)
    np.testing.assert_allclose(found, np.diag(4 * np.exp(2 * X)), rtol=1e-12)


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_anything_else_is_refused(framework):
    f = pb.external(value, output=lambda x: x.replace(shape=(2,)))
    f.pullback(pull)
    with pytest.raises(SecondOrderError, match='second="central"'):
        loss_hessian(f, framework)


def test_an_external_pullback_without_a_gradient_is_refused():
    f = pb.external(value, output=lambda x: x.replace(shape=(2,)))
    f.pullback(pb.external(pull, output=lambda dy, x: x))
    with pytest.raises(ExternalGradientError, match="pull"):
        loss_hessian(f, "tensorflow")


def test_a_third_derivative_is_refused():
    f = by_differences()
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        dx = tape.gradient(y, x)
        ddx = tape.gradient(dx, x)
    with pytest.raises(SecondOrderError):
        tape.gradient(ddx, x)
