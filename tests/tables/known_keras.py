"""What is truly wrong in Keras's own functions (3.15 on TensorFlow 2.21), shown without this library.

Each reproduction gives what Keras claims and what is true. One that agrees again is to be taken out. All of
these come from the function of TensorFlow that Keras calls: see `known_tensorflow.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf


def _mixed(f: Callable[[Any, Any], Any], x: Any, by: Any) -> Any:
    """Differentiate the first entry of the gradient by `x` once more; no gradient is the zero it becomes."""
    with tf.GradientTape() as outer:
        outer.watch(by)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x, by)
        total = inner.gradient(y, x)[0, 0]
    found = outer.gradient(total, by)
    return tf.zeros_like(by) if found is None else found


def normalized_twice() -> tuple[Any, Any]:
    """The mean inside the variance is taken for a constant, by `tf.nn.moments`."""
    x = tf.constant([[1.0, 2.0, 4.0]], tf.float64)
    gamma = tf.constant([1.0, -2.0, 0.5], tf.float64)

    def plain(x: Any) -> Any:
        left = x - tf.reduce_mean(x, -1, keepdims=True)
        return left * tf.math.rsqrt(tf.reduce_mean(left**2, -1, keepdims=True) + 1e-3) * gamma

    beta = tf.zeros_like(gamma)
    ours = _mixed(lambda x, _: keras.ops.layer_normalization(x, gamma, beta, epsilon=1e-3), x, x)
    return ours, _mixed(lambda x, _: plain(x), x, x)


def moments_twice() -> tuple[Any, Any]:
    """The mean inside the variance is taken for a constant: right at first order, and not at second."""
    x = tf.constant([[1.0, 2.0, 4.0]], tf.float64)

    def plain(x: Any) -> Any:
        return tf.reduce_mean((x - tf.reduce_mean(x, -1, keepdims=True)) ** 2, -1)

    return _mixed(lambda x, _: keras.ops.moments(x, [1])[1], x, x), _mixed(lambda x, _: plain(x), x, x)


def labels_at_second_order() -> tuple[Any, Any]:
    """The gradient of the logits moves with the labels, and its own gradient says that it does not."""
    labels = tf.constant([[0.2, 0.3, 0.5]], tf.float64)
    logits = tf.constant([[1.0, -0.5, 0.3]], tf.float64)

    def keras_loss(logits: Any, labels: Any) -> Any:
        return keras.ops.categorical_crossentropy(labels, logits, from_logits=True)

    def plain(logits: Any, labels: Any) -> Any:
        return -tf.reduce_sum(labels * tf.nn.log_softmax(logits), -1)

    return _mixed(keras_loss, logits, labels), _mixed(plain, logits, labels)


def empty_segment() -> tuple[Any, Any]:
    """A segment without entries: the gradient divides by its count, and so the second derivative is NaN."""
    x = tf.constant([1.0, 2.0, 4.0], tf.float64)
    weight = tf.ones_like(x)
    with tf.GradientTape() as outer:
        outer.watch(weight)
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = tf.reduce_sum(weight * keras.ops.segment_max(x, tf.constant([0, 0, 2]), 3))
        total = tf.reduce_sum(inner.gradient(loss, x) ** 2)
    return outer.gradient(total, weight), [2.0, 0.0, 2.0]


KNOWN: dict[str, Callable[[], tuple[Any, Any]]] = {
    "keras.ops.layer_normalization(x, axis=1)": normalized_twice,
    "keras.ops.layer_normalization(x, xs, ys)": normalized_twice,
    "keras.ops.moments(x, [0])": moments_twice,
    "keras.ops.segment_max(x, seg, 3)": empty_segment,
    "keras.ops.segment_min(x, seg, 3)": empty_segment,
    "keras.ops.categorical_crossentropy(p / p.sum(1, keepdims=True), x, from_logits=True)": (
        labels_at_second_order
    ),
}
