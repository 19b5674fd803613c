"""Can I write only the partial derivatives of an elementwise function?

Yes: `pb.elementwise` makes the pullback, the pushforward, the sums over broadcast axes and the higher orders
of them.
"""

import numpy as np
import tensorflow as tf

import pullback as pb


def length(a, b):
    """√(a² + b²), without overflow: both are divided by the larger first."""
    largest = tf.maximum(tf.abs(a), tf.abs(b))
    a, b = tf.math.divide_no_nan(a, largest), tf.math.divide_no_nan(b, largest)
    return largest * tf.sqrt(a**2 + b**2)


def by_a(a, b, output):
    """∂ length / ∂a = a / length, and 0 at the origin."""
    return tf.math.divide_no_nan(a, output)


def by_b(a, b, output):
    """∂ length / ∂b = b / length, and 0 at the origin."""
    return tf.math.divide_no_nan(b, output)


hypot = pb.elementwise(length, [by_a, by_b])


def plain_hypot(a, b):
    """The textbook formula, differentiated by TensorFlow."""
    return tf.sqrt(a * a + b * b)


def derivatives(function, a, b):
    """The gradients of the sum, and the gradients of their sum of squares."""
    with tf.GradientTape() as outer:
        outer.watch([a, b])
        with tf.GradientTape() as inner:
            inner.watch([a, b])
            total = tf.reduce_sum(function(a, b))
        first = inner.gradient(total, [a, b])
        size = sum(tf.reduce_sum(g**2) for g in first)
    return [*first, *outer.gradient(size, [a, b])]


if __name__ == "__main__":
    a, b = tf.constant([[3.0], [5.0]]), tf.constant([4.0, 12.0, 1.0])  # broadcast to (2, 3)
    for found, expected in zip(derivatives(hypot, a, b), derivatives(plain_hypot, a, b)):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    print("shapes of the gradients:", *(tuple(g.shape) for g in derivatives(hypot, a, b)[:2]))

    with tf.autodiff.ForwardAccumulator(a, tf.ones_like(a)) as forward:
        y = hypot(a, b)
    np.testing.assert_allclose(forward.jvp(y), a / plain_hypot(a, b), rtol=1e-6)
    print("forward mode along a:", forward.jvp(y).numpy()[0])

    huge, origin = (tf.constant([[3e30]]), tf.constant([4e30])), (tf.zeros([1, 1]), tf.zeros([1]))
    assert derivatives(plain_hypot, *huge)[0] == 0, "3e30 / ∞"
    np.testing.assert_allclose(derivatives(hypot, *huge)[0], [[0.6]], rtol=1e-6)
    assert np.isnan(derivatives(plain_hypot, *origin)[0]), "∞ · 0"
    np.testing.assert_array_equal(derivatives(hypot, *origin)[0], [[0.0]])
    print("by a: 0.6 at (3e30, 4e30) and 0 at the origin; the textbook formula gives 0 and nan")
