"""Array functions in TensorFlow, as `Arrays` in `hosts/base.py` says: for host-neutral rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pullback.dtypes import WIDE
from pullback.hosts import refusals

abs = tf.abs
argmax = tf.argmax
arctan = tf.atan
erfc = tf.math.erfc
floor = tf.floor
isfinite = tf.math.is_finite
maximum = tf.maximum
round = tf.round
sigmoid = tf.sigmoid
sign = tf.sign
softmax = tf.nn.softmax
sqrt = tf.sqrt
stop = tf.stop_gradient
tanh = tf.tanh
times = tf.math.multiply_no_nan
where = tf.where
zeros_like = tf.zeros_like


def clip(x: Any, low: Any, high: Any) -> Any:
    """Keep numbers between two; `tf.clip_by_value` goes through them twice."""
    return tf.raw_ops.ClipByValue(t=x, clip_value_min=low, clip_value_max=high)


def cast(value: Any, like: Any) -> Any:
    return value if isinstance(value, (int, float)) else tf.cast(value, like.dtype)


def wide(x: Any) -> Any:
    return tf.cast(x, WIDE.get(x.dtype.name, x.dtype))


def square_sum(x: Any, keep: int | None) -> Any:
    squares = tf.math.real(x * tf.math.conj(x)) if x.dtype.is_complex else x * x
    if keep is None:
        return tf.reduce_sum(squares)
    rank = x.shape.rank
    if rank is None:
        axes = tf.range(tf.rank(x))
        axes = tf.boolean_mask(axes, axes != keep % tf.rank(x))
    else:
        axes = [axis for axis in range(rank) if axis != keep % rank]
    return tf.reduce_sum(squares, axes, keepdims=True)


def one_hot(index: Any, like: Any, axis: int) -> Any:
    depth = like.shape[axis] if like.shape.rank is not None else None
    axis = axis if like.shape.rank is None else axis % like.shape.rank  # tf.one_hot counts back by one only
    return tf.one_hot(index, tf.shape(like)[axis] if depth is None else depth, axis=axis, dtype=like.dtype)


def put(rows: Any, place: Any, x: Any) -> Any:
    """Put a tensor into the place of a row; TensorFlow writes it in place if nobody else holds the rows."""
    return tf.tensor_scatter_nd_update(rows, [[tf.cast(place, tf.int32)]], [x])


def first(rows: Any, place: Any) -> Any:
    """Give the rows before a place; all of them in a graph."""
    return rows[: int(place)] if tf.executing_eagerly() else rows


def shaped(x: Any, like: Any) -> Any:
    found = tf.reshape(x, tf.shape(like))
    found.set_shape(like.shape)
    return found


def trail(x: Any, like: Any) -> Any:
    if x.shape.rank is not None and like.shape.rank is not None:
        missing = like.shape.rank - x.shape.rank
        if missing <= 0:
            return x
        if x.shape.is_fully_defined():
            return tf.reshape(x, [*x.shape, *[1] * missing])
        return tf.reshape(x, tf.concat([tf.shape(x), [1] * missing], 0))
    ones = tf.ones([tf.maximum(tf.rank(like) - tf.rank(x), 0)], tf.int32)
    return tf.reshape(x, tf.concat([tf.shape(x), ones], 0))


def held(inputs: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """Give tensors again, once others are computed: no compiler takes what comes of them for the same.

    They pass through a choice that is always the same and that no compiler knows: XLA does not heed control
    dependencies.
    """
    if tf.executing_eagerly():
        return list(inputs)
    never = tf.constant(False)
    for tensor in after:
        if tensor.dtype.is_floating:
            # nothing is larger than infinity; a compiler does not ask, since one element is no constant
            one = tf.reduce_max(tf.reshape(tensor, [-1])[:1])
            never = never | (one > tf.constant(float("inf"), tensor.dtype))
    return [tf.where(never, tf.zeros_like(x), x) for x in inputs]


def report(bad: Any, text: str, counter: Any, result: Any) -> Any:
    """Add the number of places in `bad` to a counter; without one, say it on stderr in eager mode.

    Gives the result, which waits for the counter: a backward graph is run for its results only. A graph says
    nothing by itself: XLA compiles no print, and a graph does not know who will compile it.
    """
    if counter is None and not tf.executing_eagerly():
        return result
    count = tf.math.count_nonzero(bad)
    if counter is not None:
        if not hasattr(counter, "assign_add"):
            raise refusals.counter(
                counter, "a variable of an integer dtype", "tf.Variable(0, trainable=False)"
            )
        added = counter.assign_add(tf.cast(count, counter.dtype), read_value=False)
        with tf.control_dependencies([] if added is None else [added]):
            return tf.identity(result)
    if count:
        print(f"{text}: {int(count)} of {int(tf.size(bad))} values", file=sys.stderr)
    return result
