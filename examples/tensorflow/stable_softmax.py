"""How do I write a softmax that neither overflows nor loses its gradient?

Subtract the largest entry first: softmax does not change. With y = softmax(x),
    dx = y · (dy − Σ dy·y)
needs only y, so nothing else has to be kept.
"""

import numpy as np
import tensorflow as tf

import pullback as pb


def naive_softmax(x):
    """The textbook formula."""
    e = tf.exp(x)
    return e / tf.reduce_sum(e, axis=-1, keepdims=True)


@pb.custom_gradient
def softmax(x):
    """Softmax along the last axis."""
    e = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
    y = e / tf.reduce_sum(e, axis=-1, keepdims=True)

    def grad(dy):
        return y * (dy - tf.reduce_sum(dy * y, axis=-1, keepdims=True))

    return y, grad


def first_and_second(function, x, weights):
    """Give the gradient of Σ weights·function(x), and the gradient of its sum of squares."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = tf.reduce_sum(weights * function(x))
        first = inner.gradient(loss, x)
        size = tf.reduce_sum(first**2)
    return first.numpy(), outer.gradient(size, x).numpy()


if __name__ == "__main__":
    weights = tf.constant([[1.0, -2.0, 0.5]])
    small, large = tf.constant([[1.0, 2.0, 3.0]]), tf.constant([[1.0, 500.0, 501.0]])

    found, expected = (
        first_and_second(softmax, small, weights),
        first_and_second(tf.nn.softmax, small, weights),
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-6)
    print("gradient at", small.numpy()[0], "is", found[0][0])

    assert np.isnan(first_and_second(naive_softmax, large, weights)[0]).any()
    first, second = first_and_second(softmax, large, weights)
    assert np.isfinite(first).all()
    assert np.isfinite(second).all()
    np.testing.assert_allclose(first.sum(), 0.0, atol=1e-6)  # softmax ignores a shift of x
    print("gradient at", large.numpy()[0], "is", first[0], "(the textbook formula: nan)")
