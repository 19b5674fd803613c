"""What do I do where automatic differentiation gives NaN?

d/dx log(1 + eˣ) = eˣ / (1 + eˣ), and for a large x autodiff computes ∞/∞. The same slope written as
1 / (1 + e⁻ˣ) is 1 there, as it should be.
"""

import numpy as np
import tensorflow as tf

import pullback as pb


def plain_log1pexp(x):
    """The textbook formula, differentiated by TensorFlow."""
    return tf.math.log(1 + tf.exp(x))


@pb.custom_gradient
def log1pexp(x):
    """log(1 + eˣ), with a value and a slope that stay finite."""

    def grad(dy):
        return dy * tf.sigmoid(x)

    return tf.maximum(x, 0) + tf.math.log1p(tf.exp(-tf.abs(x))), grad


def derivatives(function, x):
    """The first and second derivative of an elementwise function."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        first = inner.gradient(y, x)
    return first.numpy(), outer.gradient(first, x).numpy()


if __name__ == "__main__":
    safe = tf.constant([-3.0, 0.0, 3.0])
    for found, expected in zip(derivatives(log1pexp, safe), derivatives(plain_log1pexp, safe)):
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    large = tf.constant([100.0])
    assert np.isnan(derivatives(plain_log1pexp, large)[0]).all()
    print("autodiff at 100: ", *derivatives(plain_log1pexp, large))

    first, second = derivatives(log1pexp, large)
    np.testing.assert_array_equal(first, [1.0])
    np.testing.assert_array_equal(second, [0.0])
    np.testing.assert_array_equal(derivatives(tf.function(log1pexp), large), [[1.0], [0.0]])
    print("the rule at 100: ", first, second, "(first, second derivative; eager and graph)")
