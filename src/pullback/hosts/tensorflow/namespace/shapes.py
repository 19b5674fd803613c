"""The same values in another arrangement, as the array API names it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    """Give a tensor another shape; one length may be −1."""
    return tf.reshape(x, [shape] if isinstance(shape, int) else shape)


def expand_dims(x: Any, /, *, axis: int = 0) -> Any:
    """Add an axis of length one."""
    return tf.expand_dims(x, axis)


def squeeze(x: Any, /, axis: Any) -> Any:
    """Remove axes of length one."""
    return tf.squeeze(x, list(axis) if isinstance(axis, tuple) else axis)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """Put the axes in another order."""
    return tf.transpose(x, axes)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Move axes to other places; the others keep their order."""
    x = tf.convert_to_tensor(x)
    rank = x.shape.rank
    sources = [a % rank for a in ([source] if isinstance(source, int) else source)]
    places = [a % rank for a in ([destination] if isinstance(destination, int) else destination)]
    order = [axis for axis in range(rank) if axis not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return tf.transpose(x, order)


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """Turn the order along axes round."""
    x = tf.convert_to_tensor(x)
    axes = range(x.shape.rank) if axis is None else [axis] if isinstance(axis, int) else axis
    return tf.reverse(x, [a % x.shape.rank for a in axes])


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Move values along axes; what leaves at one end comes in at the other."""
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), tf.shape(x))
    axis = list(axis) if isinstance(axis, tuple) else axis
    if isinstance(axis, list) and isinstance(shift, int):
        shift = [shift] * len(axis)
    x = tf.convert_to_tensor(x)
    if x.shape.rank is not None:
        # From the start: in a batch, TensorFlow takes an axis from the end for the one behind it.
        axis = [a % x.shape.rank for a in axis] if isinstance(axis, list) else axis % x.shape.rank
    return tf.roll(x, list(shift) if isinstance(shift, tuple) else shift, axis)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Put tensors one behind the other along an axis."""
    if axis is None:
        arrays, axis = [tf.reshape(array, [-1]) for array in arrays], 0
    return tf.concat(list(arrays), axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Put tensors one behind the other along a new axis."""
    return tf.stack(list(arrays), axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Take a tensor apart along an axis."""
    return tuple(tf.unstack(x, axis=axis))


def tile(x: Any, repetitions: Any, /) -> Any:
    """Repeat a tensor along its axes, and along new ones in front."""
    x = tf.convert_to_tensor(x)
    times = [repetitions] if isinstance(repetitions, int) else list(repetitions)
    missing = x.shape.rank - len(times)
    for _ in range(max(-missing, 0)):
        x = x[None]
    return tf.tile(x, [1] * max(missing, 0) + times)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Repeat each value along an axis."""
    return tf.repeat(x, repeats, axis)


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """Broadcast a tensor to a shape."""
    return tf.broadcast_to(x, shape)


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Broadcast tensors to the shape that they have together."""
    shape = tf.shape(arrays[0])
    for array in arrays[1:]:
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(array))
    return [tf.broadcast_to(array, shape) for array in arrays]
