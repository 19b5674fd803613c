"""One residual of two runs: the value of the first, the derivative of the second."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pullback.dtypes import ROUNDOFF
from pullback.hosts import refusals
from pullback.hosts.kept import ChangedError
from pullback.hosts.operation import Operation
from pullback.hosts.tensorflow import private


def link(operation: Operation, kept: Any, again: Any) -> Any:
    """Give a tensor with the value of the first run, whose gradient goes to that of the second."""
    if kept.dtype != again.dtype or not kept.shape.is_compatible_with(again.shape):
        raise ChangedError
    with private.stop_recording():
        agree = _agree(kept, again)
    if not tf.executing_eagerly():
        return _guarded(operation, agree, again)
    if not agree:
        raise ChangedError
    with private.stop_recording():
        if tf.reduce_all(tf.equal(kept, again)):  # nearly always
            return again
        copy = tf.identity(kept)
    private.record_operation("residual", [copy], [again], lambda *d: d, lambda *t: t)
    return copy


def _agree(a: Any, b: Any) -> Any:
    """Tell whether two tensors are the same up to rounding."""
    same = tf.equal(a, b)
    if a.dtype.is_floating or a.dtype.is_complex:
        eps = 2 * ROUNDOFF.get(a.dtype.name, 2.0**-8)
        size = tf.maximum(tf.abs(a), tf.abs(b))
        finite = tf.where(tf.math.is_finite(size), size, tf.zeros_like(size))
        largest = tf.reduce_max(tf.concat([tf.reshape(finite, [-1]), tf.zeros([1], size.dtype)], 0))
        near = tf.abs(a - b) <= eps**0.5 * finite + 64 * eps * largest
        same = same | near | ((a != a) & (b != b))
    return tf.reduce_all(same)


def _guarded(operation: Operation, agree: Any, again: Any) -> Any:
    """Refuse when the graph runs; XLA drops assertions, and gets NaN."""
    said = str(refusals.changed_since(operation))
    with tf.control_dependencies([tf.debugging.Assert(agree, [said])]):
        if again.dtype.is_floating or again.dtype.is_complex:
            return tf.where(agree, again, tf.cast(float("nan"), again.dtype))
        return tf.identity(again)
