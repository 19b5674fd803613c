"""Second derivatives and forward mode of each replacement are what its docstring says."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

X = tf.constant([0.3, -0.8, 1.7])
LINEAR = {
    "scale": (lambda x: pb.scale_gradient(x, 0.25), 0.25),
    "reverse": (lambda x: pb.reverse_gradient(x, 0.5), -0.5),
    "stop": (lambda x: pb.stop_gradient(x), 0.0),
    "a linear map": (lambda x: pb.map_gradient(x, lambda dy: 3 * dy), 3.0),
    "straight through": (lambda x: pb.straight_through(tf.round)(x), 1.0),
}
NOT_LINEAR = {
    "clip by value": lambda x: pb.clip_gradient(x, value=1e9),
    "clip by norm": lambda x: pb.clip_gradient(x, norm=1e9),
    "finite": lambda x: pb.finite_gradient(x),
    "a map that is not linear": lambda x: pb.map_gradient(x, tf.sign),
}
LIKE = {
    "surrogate": (lambda x: pb.surrogate(tf.round, like=tf.tanh)(x), tf.tanh),
    "with_gradient": (
        lambda x: pb.with_gradient(tf.exp, lambda dy, x, output: dy * output)(x),
        tf.exp,
    ),
    "heaviside": (lambda x: pb.heaviside(x, sharpness=2.0), lambda x: tf.sigmoid(2 * x)),
    "sign": (
        lambda x: pb.sign(x, slope="arctan", sharpness=1.0),
        lambda x: 2 / np.pi * tf.atan(np.pi / 2 * x),
    ),
    "argmax": (lambda x: pb.argmax_one_hot(x, temperature=0.5), lambda x: tf.nn.softmax(2 * x)),
}


def first(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(f(x) * tf.constant([1.0, -2.0, 0.5]))
    return tape.gradient(y, x, unconnected_gradients="zero")


def second(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        g = tf.reduce_sum(first(f, x) ** 2)
    return tape.gradient(g, x, unconnected_gradients="zero")


def forward(f, x, tangent):
    with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
        y = f(x)
    return accumulator.jvp(y, unconnected_gradients="zero")


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_one_pushes_tangents_forward_and_has_no_second_derivative(name, wrap):
    f, factor = LINEAR[name]
    f = wrap(f)
    np.testing.assert_allclose(forward(f, X, 2 * X), 2 * factor * X, rtol=1e-6)
    np.testing.assert_array_equal(second(f, X), [0, 0, 0])


@pytest.mark.parametrize("name", [name for name in LINEAR if name != "straight through"])
def test_the_second_derivative_around_it_is_scaled_too(name, wrap):
    """∂/∂x of r(x)³: the rule acts once on the first derivative and twice on the second."""
    f, factor = LINEAR[name]

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = wrap(f)(x) ** 3
        return tape.gradient(y, x, unconnected_gradients="zero")

    with tf.GradientTape() as tape:
        tape.watch(X)
        g = slope(X)
    np.testing.assert_allclose(g, 3 * X**2 * factor, rtol=1e-5)
    found = tape.gradient(g, X, unconnected_gradients="zero")
    np.testing.assert_allclose(found, 6 * X * factor**2, rtol=1e-5)


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_one_that_is_not_linear_refuses_forward_mode(name, wrap):
    with pytest.raises(pb.errors.ForwardModeError):
        forward(wrap(NOT_LINEAR[name]), X, X)


@pytest.mark.parametrize("name", LIKE)
def test_orders_are_those_of_the_function_it_is_like(name, wrap):
    f, like = LIKE[name]
    f = wrap(f)
    np.testing.assert_allclose(first(f, X), first(like, X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second(f, X), second(like, X), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(forward(f, X, 2 * X), forward(like, X, 2 * X), rtol=1e-5, atol=1e-6)


def test_the_second_derivative_of_a_clipped_gradient_is_that_of_the_clipped_gradient(wrap):
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = wrap(lambda x: pb.clip_gradient(x, norm=1.0))(x) ** 2
        return tape.gradient(y, x)

    def closed(x):
        dy = 2 * x
        return dy / tf.maximum(tf.norm(dy), 1.0)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        found, expected = slope(X), closed(X)
    np.testing.assert_allclose(tape.gradient(found, X), tape.gradient(expected, X), rtol=1e-5, atol=1e-6)


def test_a_gradient_of_zero_has_a_finite_second_derivative(wrap):
    x = tf.zeros([3])
    f = wrap(lambda x: pb.clip_gradient(x, norm=1.0))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) ** 2
        g = tape.gradient(y, x)
    # the cotangent [2, 2, 2] of the second pass goes through the same clip
    np.testing.assert_allclose(outer.gradient(g, x), np.full(3, 3**-0.5), rtol=1e-6)


@pytest.mark.parametrize("name", [*LINEAR, *LIKE])
def test_a_jacobian_is_that_of_the_gradients(name):
    f = (LINEAR | LIKE)[name][0]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = f(X)
        parts = [y[i] for i in range(3)]
    rows = [tape.gradient(part, X, unconnected_gradients="zero") for part in parts]
    found = tape.jacobian(y, X, unconnected_gradients="zero")
    np.testing.assert_allclose(found, tf.stack(rows), rtol=1e-5, atol=1e-6)
