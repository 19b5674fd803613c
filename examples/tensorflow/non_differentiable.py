"""How do I differentiate an operation that has a kink, or no slope at all?

Choose the slope, element by element, with `tf.where`. A condition for `tf.cond` or `if` must be one bool:
a vector is refused, with the fix in the message.
"""

import functools

import numpy as np
import tensorflow as tf

import pullback as pb


@pb.custom_gradient
def kink(x):
    """2x above zero, x below: at zero the slope is a choice, here 1."""

    def grad(dy):
        return tf.where(x > 0, 2 * dy, dy)

    return tf.where(x > 0, 2 * x, x), grad


@pb.custom_gradient(like=tf.identity)
def round_through(x):
    """Rounding has no slope anywhere: let the gradient pass straight through."""

    def grad(dy):
        return dy

    return tf.round(x), grad


def gradient(function, x):
    """Differentiate the sum of a function."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(function(x))
    return tape.gradient(y, x)


def refusal(x):
    """Give the error that a vector condition gets."""

    @pb.custom_gradient
    def kink_by_cond(x):
        def grad(dy):
            return tf.where(x > 0, 2 * dy, dy)

        return tf.cond(x > 0, lambda: 2 * x, lambda: x), grad

    try:
        kink_by_cond(x)
    except pb.errors.VectorConditionError as error:
        return str(error)
    raise AssertionError("a vector was taken for one condition")


if __name__ == "__main__":
    x = tf.constant([-1.2, 0.0, 1.7])
    for function, slopes in [(kink, [1.0, 1.0, 2.0]), (round_through, [1.0, 1.0, 1.0])]:
        np.testing.assert_array_equal(gradient(function, x), slopes)
        np.testing.assert_array_equal(tf.function(functools.partial(gradient, function))(x), slopes)
        print(f"{function.__name__} at {x.numpy()}: gradient {gradient(function, x).numpy()}")

    assert gradient(tf.round, x) is None, "TensorFlow gives rounding no gradient"
    assert "tf.where" in refusal(x)
    print(refusal(x))
