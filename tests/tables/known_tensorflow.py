"""What is truly wrong in TensorFlow's own functions (2.21), shown without this library.

Each reproduction gives what TensorFlow claims and what is true. One that agrees again is to be taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf


def empty_segment() -> tuple[Any, Any]:
    """A segment without entries: the gradient divides by its count, and so the second derivative is NaN.

    The sum over that segment is zero whatever the weight is, and so is its second derivative.
    """
    x = tf.constant([1.0, 2.0, 4.0], tf.float64)
    weight = tf.constant([1.0, 1.0, 1.0], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(weight)
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = tf.reduce_sum(weight * tf.math.segment_mean(x, [0, 0, 2]))
        total = tf.reduce_sum(inner.gradient(loss, x) ** 2)
    return outer.gradient(total, weight), np.array([1.0, 0.0, 2.0])


def parameters_of_betainc() -> tuple[Any, Any]:
    """The value moves with the first two arguments, and no gradient reaches them: None, and no error."""
    return _of_first(lambda a: tf.math.betainc(a, tf.constant(1.3, tf.float64), tf.constant(0.4, tf.float64)))


def order_of_zeta() -> tuple[Any, Any]:
    """The value moves with the first argument, and no gradient reaches it: None, and no error."""
    return _of_first(lambda a: tf.math.zeta(1 + a, tf.constant(0.4, tf.float64)))


def _of_first(f: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Give the gradient beside a difference; None is the zero that every sum makes of it."""
    a, h = tf.constant(0.7, tf.float64), 1e-6
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = f(a)
    found = tape.gradient(y, a)
    return 0.0 if found is None else found, (f(a + h) - f(a - h)) / (2 * h)


def complex_cumprod() -> tuple[Any, Any]:
    """The gradient of a cumulative product of complex numbers is the conjugate of what it should be."""
    z = tf.constant([1 + 2j, 0.5 - 1j], tf.complex128)

    def gradient(f: Callable[[Any], Any]) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = tf.math.real(f(z))
        return tape.gradient(y, z)

    return gradient(lambda z: tf.math.cumprod(z)[1]), gradient(lambda z: z[0] * z[1])


def complex_product_twice() -> tuple[Any, Any]:
    """The gradient of a complex product is made of cumulative products: right, but its own is not."""
    z = tf.constant([1 + 2j, 0.5 - 1j, -0.7 + 0.3j], tf.complex128)

    def second(f: Callable[[Any], Any]) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(z)
            with tf.GradientTape() as inner:
                inner.watch(z)
                y = tf.math.real(f(z))
            total = tf.math.real(inner.gradient(y, z)[0])
        return outer.gradient(total, z)

    return second(tf.reduce_prod), second(lambda z: z[0] * z[1] * z[2])


def complex_determinant() -> tuple[Any, Any]:
    """The gradient of the determinant of a complex matrix is not that of the same formula by hand."""
    a = tf.constant([[1 + 2j, 0.5 - 1j], [-0.7 + 0.3j, 1 - 0.4j]], tf.complex128)

    def gradient(f: Callable[[Any], Any]) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = tf.math.real(f(a))
        return tape.gradient(y, a)

    return gradient(tf.linalg.det), gradient(lambda a: a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0])


def moments_twice() -> tuple[Any, Any]:
    """The mean inside the variance is taken for a constant: right at first order, and not at second."""
    x = tf.constant([1.0, 2.0, 4.0], tf.float64)

    def second(f: Callable[[Any], Any]) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            total = inner.gradient(y, x)[0]
        return outer.gradient(total, x)

    variance = second(lambda x: tf.nn.moments(x, [0])[1])
    return variance, second(lambda x: tf.reduce_mean((x - tf.reduce_mean(x)) ** 2))


KNOWN: dict[str, Callable[[], tuple[Any, Any]]] = {
    "tensorflow.math.segment_mean(x, seg)": empty_segment,
    "tensorflow.math.segment_max(x, seg)": empty_segment,
    "tensorflow.math.segment_min(x, seg)": empty_segment,
    "tensorflow.math.unsorted_segment_max(x, seg, 3)": empty_segment,
    "tensorflow.math.unsorted_segment_min(x, seg, 3)": empty_segment,
    "tensorflow.math.betainc(p, q, t)": parameters_of_betainc,
    "tensorflow.math.zeta(g, p)": order_of_zeta,
    "tensorflow.math.cumprod(c)": complex_cumprod,
    "tensorflow.math.reduce_prod(c)": complex_product_twice,
    "tensorflow.linalg.det(ca)": complex_determinant,
    "tensorflow.nn.moments(x, [0])": moments_twice,
}
