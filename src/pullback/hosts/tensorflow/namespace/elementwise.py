"""Functions of one or two tensors, element by element, as the array API names them."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from pullback.hosts.tensorflow.namespace.promotion import both, pair

abs, negative, positive, sign, square = tf.abs, tf.negative, tf.identity, tf.sign, tf.square
sqrt, exp, expm1, log, log1p = tf.sqrt, tf.exp, tf.math.expm1, tf.math.log, tf.math.log1p
sin, cos, tan, asin, acos, atan = tf.sin, tf.cos, tf.tan, tf.asin, tf.acos, tf.atan
sinh, cosh, tanh, asinh, acosh, atanh = tf.sinh, tf.cosh, tf.tanh, tf.asinh, tf.acosh, tf.atanh
isnan, isinf, isfinite = tf.math.is_nan, tf.math.is_inf, tf.math.is_finite
logical_not, bitwise_invert = tf.logical_not, tf.bitwise.invert
conj, real, imag = tf.math.conj, tf.math.real, tf.math.imag

add, subtract, multiply, divide = both(tf.add), both(tf.subtract), both(tf.multiply), both(tf.divide)
floor_divide, remainder, pow = both(tf.math.floordiv), both(tf.math.floormod), both(tf.pow)
maximum, minimum, atan2 = both(tf.maximum), both(tf.minimum), both(tf.atan2)
equal, not_equal = both(tf.equal), both(tf.not_equal)
less, less_equal = both(tf.less), both(tf.less_equal)
greater, greater_equal = both(tf.greater), both(tf.greater_equal)
logical_and, logical_or, logical_xor = both(tf.logical_and), both(tf.logical_or), both(tf.math.logical_xor)
bitwise_and, bitwise_or = both(tf.bitwise.bitwise_and), both(tf.bitwise.bitwise_or)
bitwise_xor = both(tf.bitwise.bitwise_xor)
bitwise_left_shift, bitwise_right_shift = both(tf.bitwise.left_shift), both(tf.bitwise.right_shift)


def _rounding(function: Any) -> Any:
    """Leave whole numbers as they are."""

    def rounded(x: Any, /) -> Any:
        x = tf.convert_to_tensor(x)
        return x if x.dtype.is_integer else function(x)

    rounded.__name__ = function.__name__
    return rounded


ceil, floor = _rounding(tf.math.ceil), _rounding(tf.math.floor)
round = _rounding(tf.round)  # half to even


@_rounding
def trunc(x: Any) -> Any:
    """Drop what is behind the point."""
    return tf.where(x < 0, tf.math.ceil(x), tf.math.floor(x))


def reciprocal(x: Any, /) -> Any:
    """Give one divided by a value."""
    return 1 / tf.convert_to_tensor(x)


def log2(x: Any, /) -> Any:
    """Give the logarithm to base 2."""
    return tf.math.log(x) / math.log(2)


def log10(x: Any, /) -> Any:
    """Give the logarithm to base 10."""
    return tf.math.log(x) / math.log(10)


@both
def logaddexp(x1: Any, x2: Any) -> Any:
    """Give log(exp(x1) + exp(x2)) without leaving the range of numbers; smooth where both are equal."""
    more = x1 >= x2
    high, low = tf.where(more, x1, x2), tf.where(more, x2, x1)
    same = tf.math.is_inf(high) & tf.equal(high, low)  # ∞ − ∞
    return high + tf.math.softplus(tf.where(same, tf.zeros_like(high), low - high))


@both
def hypot(x1: Any, x2: Any) -> Any:
    """Give √(x1² + x2²) without leaving the range of numbers."""
    scale = tf.stop_gradient(tf.maximum(tf.abs(x1), tf.abs(x2)))  # the result does not depend on it
    scale = tf.where(tf.equal(scale, 0) | tf.math.is_inf(scale), tf.ones_like(scale), scale)
    a, b = x1 / scale, x2 / scale
    return scale * tf.sqrt(a * a + b * b)


def signbit(x: Any, /) -> Any:
    """Tell where the sign bit is set: in −0.0, too."""
    x = tf.convert_to_tensor(x)
    bits = {2: tf.int16, 4: tf.int32, 8: tf.int64}[x.dtype.size]
    return tf.bitcast(x, bits) < 0


@both
def copysign(x1: Any, x2: Any) -> Any:
    """Give the size of the one with the sign of the other."""
    return tf.where(tf.equal(signbit(x1), signbit(x2)), x1, -x1)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Keep values within bounds; None is no bound."""
    x = tf.convert_to_tensor(x)
    x = x if min is None else tf.maximum(x, tf.cast(min, x.dtype))
    return x if max is None else tf.minimum(x, tf.cast(max, x.dtype))


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Choose from two, element by element."""
    return tf.where(condition, *pair(x1, x2))
