"""Sums, averages and extremes over axes, and sums along one, as the array API names them."""

from __future__ import annotations

import builtins
from typing import Any

import tensorflow as tf

from pullback.hosts.tensorflow.namespace.promotion import is_integral


def _axis(axis: Any) -> Any:
    return list(axis) if isinstance(axis, tuple) else axis


def _wide(x: Any, dtype: Any) -> Any:
    """Give what a sum is taken of: whole numbers as int64, unless another dtype is named."""
    x = tf.convert_to_tensor(x)
    if dtype is not None:
        return tf.cast(x, dtype)
    if is_integral(x.dtype):
        return tf.cast(x, tf.uint64 if x.dtype.is_unsigned else tf.int64)
    return x


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Any:
    """Add up."""
    return tf.reduce_sum(_wide(x, dtype), _axis(axis), keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Any:
    """Multiply up."""
    return tf.reduce_prod(_wide(x, dtype), _axis(axis), keepdims)


def _reduction(function: Any, text: str, dtype: Any = None) -> Any:
    def reduce(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Any:
        return function(x if dtype is None else tf.cast(x, dtype), _axis(axis), keepdims)

    reduce.__doc__ = text
    return reduce


mean = _reduction(tf.reduce_mean, "Average.")
max = _reduction(tf.reduce_max, "Give the largest.")
min = _reduction(tf.reduce_min, "Give the least.")
all = _reduction(tf.reduce_all, "Tell whether all are true, or not zero.", tf.bool)
any = _reduction(tf.reduce_any, "Tell whether one is true, or not zero.", tf.bool)
count_nonzero = _reduction(tf.math.count_nonzero, "Count what is not zero.")


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Any:
    """Give the variance: the sum of squares around the mean, over the count less the correction."""
    x = tf.convert_to_tensor(x)
    squares = tf.square(x - tf.reduce_mean(x, _axis(axis), keepdims=True))
    total = tf.reduce_sum(squares, _axis(axis), keepdims)
    lengths = tf.shape(x) if axis is None else tf.gather(tf.shape(x), tf.reshape(axis, [-1]) % tf.rank(x))
    return total / (tf.cast(tf.reduce_prod(lengths), x.dtype) - tf.cast(correction, x.dtype))


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Any:
    """Give the standard deviation."""
    return tf.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Any:
    """Add up along an axis, and keep every step."""
    x = _wide(x, dtype)
    axis = 0 if axis is None else axis
    steps = tf.cumsum(x, axis)
    if not include_initial:
        return steps
    first = tf.zeros_like(tf.gather(x, [0], axis=axis) if x.shape[axis] != 0 else x)
    return tf.concat([first, steps], axis)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Give the differences of neighbours along an axis, n times."""
    x = tf.convert_to_tensor(x)
    x = tf.concat([part for part in (prepend, x, append) if part is not None], axis)
    for _ in range(n):
        count = tf.shape(x)[axis]
        x = tf.gather(x, tf.range(1, count), axis=axis) - tf.gather(x, tf.range(count - 1), axis=axis)
    return x
