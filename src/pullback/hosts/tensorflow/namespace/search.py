"""Finding, ordering and picking values, as the array API names it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Give the place of the largest; of equal values the first."""
    return _extreme(tf.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Give the place of the least; of equal values the first."""
    return _extreme(tf.argmin, x, axis, keepdims)


def _extreme(function: Any, x: Any, axis: int | None, keepdims: bool) -> Any:
    x = tf.convert_to_tensor(x)
    if axis is None:
        index = function(tf.reshape(x, [-1]), 0)
        return tf.reshape(index, [1] * x.shape.rank) if keepdims else index
    index = function(x, axis)
    return tf.expand_dims(index, axis) if keepdims else index


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Put the values along an axis in order."""
    return tf.sort(x, axis, "DESCENDING" if descending else "ASCENDING")


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Give the places that put the values along an axis in order."""
    direction = "DESCENDING" if descending else "ASCENDING"
    return tf.cast(tf.argsort(x, axis, direction, stable=stable), tf.int64)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Give the places at which values would keep a sorted vector sorted."""
    x1, x2 = tf.convert_to_tensor(x1), tf.convert_to_tensor(x2)
    ordered = x1 if sorter is None else tf.gather(x1, sorter)
    found = tf.searchsorted(ordered, tf.reshape(x2, [-1]), side, tf.int64)
    return tf.reshape(found, tf.shape(x2))


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Pick by index along an axis; a negative index counts from the end."""
    x = tf.convert_to_tensor(x)
    axis = 0 if axis is None else axis
    return tf.gather(x, _from_start(indices, tf.shape(x)[axis]), axis=axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """Pick along an axis by an index for each of the other places."""
    x, indices = tf.convert_to_tensor(x), tf.convert_to_tensor(indices)
    rank = x.shape.rank
    order = [a for a in range(rank) if a != axis % rank] + [axis % rank]
    x, indices = tf.transpose(x, order), tf.transpose(indices, order)
    indices = _from_start(indices, tf.shape(x)[-1])
    shape = tf.broadcast_dynamic_shape(tf.shape(x)[:-1], tf.shape(indices)[:-1])
    x = tf.broadcast_to(x, tf.concat([shape, tf.shape(x)[-1:]], 0))
    indices = tf.broadcast_to(indices, tf.concat([shape, tf.shape(indices)[-1:]], 0))
    picked = tf.gather(x, indices, axis=-1, batch_dims=rank - 1)
    return tf.transpose(picked, sorted(range(rank), key=order.__getitem__))


def _from_start(indices: Any, length: Any) -> Any:
    indices = tf.convert_to_tensor(indices)
    return tf.where(indices < 0, indices + tf.cast(length, indices.dtype), indices)
