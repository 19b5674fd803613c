"""Steps with slopes: the value is the step, the gradient the closed form of the slope."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb
from pullback.replace.slopes import SLOPES

X = np.array([-1.7, -0.9, -0.26, -0.1, 0.15, 0.4, 1.2, 2.6])
SHARPNESS = {"sigmoid": 3.0, "arctan": 1.5, "fast_sigmoid": 4.0, "triangular": 0.8, "straight_through": 0.5}
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-5}


def sigmoid(t):
    return 1 / (1 + np.exp(-t))


CLOSED = {
    "sigmoid": lambda x, k: k * sigmoid(k * x) * (1 - sigmoid(k * x)),
    "arctan": lambda x, k: k / 2 / (1 + (np.pi / 2 * k * x) ** 2),
    "fast_sigmoid": lambda x, k: 1 / (1 + k * np.abs(x)) ** 2,
    "triangular": lambda x, k: k * np.maximum(0, 1 - k * np.abs(x)),
    "straight_through": lambda x, k: (k * np.abs(x) <= 1).astype(float),
}
STEPS = {
    "heaviside": (pb.heaviside, lambda x: (x >= 0).astype(float), lambda x: x, lambda slope: 1),
    "sign": (pb.sign, np.sign, lambda x: x, lambda slope: 1 if slope == "straight_through" else 2),
    "round": (pb.round, np.round, lambda x: x - np.floor(x) - 0.5, lambda slope: 1),
}


def test_every_slope_is_tested():
    assert set(CLOSED) == set(SLOPES)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("slope", CLOSED)
@pytest.mark.parametrize("step", STEPS)
def test_gradient_is_the_closed_form(step, slope, dtype, pull):
    function, value, inner, height = STEPS[step]
    k = SHARPNESS[slope]
    x = tf.constant(X, dtype)
    y, (dx,) = pull(lambda x: function(x, slope=slope, sharpness=k), [x], [tf.ones_like(x)])
    exact = np.asarray(tf.cast(x, tf.float64))
    np.testing.assert_array_equal(tf.cast(y, tf.float64), value(exact))
    expected = height(slope) * CLOSED[slope](inner(exact), k)
    np.testing.assert_allclose(
        tf.cast(dx, tf.float64), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


@pytest.mark.parametrize("slope", CLOSED)
@pytest.mark.parametrize("step", STEPS)
def test_the_slope_is_the_derivative_of_the_smooth_step(step, slope):
    """By central differences, which share no code with the slope."""
    function = STEPS[step][0]
    smooth = function.rule.intent.function
    x, h = tf.constant(X, tf.float64), 1e-6
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x, slope=slope, sharpness=SHARPNESS[slope])
    ends = [smooth(x + s * h, slope=slope, sharpness=SHARPNESS[slope]) for s in (1, -1)]
    np.testing.assert_allclose(tape.gradient(y, x), (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("slope", CLOSED)
def test_the_usual_sharpness(step, slope, pull):
    function, _, inner, height = STEPS[step]
    x = tf.constant(X, tf.float32)
    _, (dx,) = pull(lambda x: function(x, slope=slope), [x], [tf.ones_like(x)])
    k = SLOPES[slope].sharpness
    np.testing.assert_allclose(dx, height(slope) * CLOSED[slope](inner(X), k), rtol=1e-4, atol=1e-6)


def test_argmax_is_one_hot_with_the_gradient_of_a_softmax(pull):
    x = tf.constant([[0.3, 2.0, 2.0], [-1.0, 0.5, 0.2]])
    for axis in (-1, 0):
        y, (dx,) = pull(lambda x, axis=axis: pb.argmax_one_hot(x, axis=axis, temperature=0.7), [x])
        _, (expected,) = pull(lambda x, axis=axis: tf.nn.softmax(x / 0.7, axis), [x])
        np.testing.assert_array_equal(y, np.moveaxis(np.eye(x.shape[axis])[np.argmax(x, axis)], -1, axis))
        np.testing.assert_allclose(dx, expected, rtol=1e-5, atol=1e-7)


def test_argmax_straight_through(pull):
    x = tf.constant([[0.3, 2.0, 1.0]])
    _, (dx,) = pull(lambda x: pb.argmax_one_hot(x, like="straight_through"), [x], [3 * x])
    np.testing.assert_array_equal(dx, 3 * x)
