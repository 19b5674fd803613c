"""How do I replace a function's gradient by the output of another function?

Write the other function inside `grad`, and say so: `like=` when the gradient is the derivative of another
function, `differs=` when it is the derivative of none.
"""

import functools

import numpy as np
import tensorflow as tf

import pullback as pb


@pb.custom_gradient(like=tf.tanh)
def sign(x):
    """A step forward, the slope of tanh backward."""

    def grad(dy):
        return dy * (1 - tf.tanh(x) ** 2)

    return tf.sign(x), grad


def damped(dy, x):
    """The other function: a slope of 2x that never exceeds 1 in size."""
    return dy * tf.clip_by_value(2 * x, -1.0, 1.0)


@pb.custom_gradient(differs="the slope is clipped, so that one large input cannot rule a training step")
def square(x):
    """x² forward, the output of `damped` backward."""

    def grad(dy):
        return damped(dy, x)

    return x**2, grad


def gradient(function, x):
    """Differentiate the sum of a function."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(function(x))
    return tape.gradient(y, x)


if __name__ == "__main__":
    x = tf.constant([-2.0, -0.25, 0.5, 3.0])

    np.testing.assert_array_equal(sign(x), tf.sign(x))
    np.testing.assert_allclose(gradient(sign, x), gradient(tf.tanh, x), rtol=1e-6)
    print("sign:  ", gradient(sign, x).numpy(), "←", sign.rule.intent)

    np.testing.assert_array_equal(square(x), x**2)
    np.testing.assert_allclose(gradient(square, x), [-1.0, -0.5, 1.0, 1.0], rtol=1e-6)
    print("square:", gradient(square, x).numpy(), "←", square.rule.intent)

    for function in (sign, square):
        compiled = tf.function(functools.partial(gradient, function))
        np.testing.assert_allclose(compiled(x), gradient(function, x), rtol=1e-6)
    print("the same in tf.function: yes")
