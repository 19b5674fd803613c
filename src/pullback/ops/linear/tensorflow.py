"""TensorFlow: a loop with one turn at a time in a graph, a loop of Python in eager mode.

A graph starts whatever is ready, so independent chunks would all be alive at once: the loop has a carry. XLA
writes a carry in its place, and one operation gives loss and slopes. A graph without it makes a sum beside
its terms, so it sums up pieces, one after the other. In both the gradient comes with the loss.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pullback.hosts.tensorflow import private
from pullback.hosts.tensorflow.callback import compiling
from pullback.ops.linear.chunks import piece_of
from pullback.ops.linear.kernels import Carry, Folded, Step
from pullback.ops.linear.plain import added as added
from pullback.ops.linear.plain import exponentials as exponentials
from pullback.ops.linear.plain import raw_product as raw_product
from pullback.ops.linear.plain import room as room
from pullback.ops.linear.plain import scaled as scaled
from pullback.ops.linear.plain import slopes as slopes
from pullback.ops.linear.plain import softmax as softmax
from pullback.ops.linear.plain import times as times
from pullback.ops.linear.plain import weighed as weighed

HELD = 2**23  # XLA has a second array of that size, for the slopes
_UNRECORDED: Any = private.stop_recording if private.AVAILABLE else contextlib.nullcontext


def adds_in_place(w: Any) -> bool:
    return not tf.executing_eagerly() and (compiling() or (w.shape[0] is not None and is_near(w)))


def pieces(w: Any, tokens: int) -> list[tuple[Any, Any]]:
    count = length(w)
    if tf.executing_eagerly() or compiling() or not isinstance(count, int):
        return [(0, count)]
    size = piece_of(tokens, count)
    return [(first, min(size, count - first)) for first in range(0, count, size)]


def at(w: Any, labels: Any) -> Any:
    return wide(tf.gather(w, tf.clip_by_value(labels, 0, length(w) - 1)))


def hit(a: Any, labels: Any, values: Any) -> Any:
    index = tf.clip_by_value(labels, 0, length(a) - 1)
    inside = tf.reshape(labels == index, [-1, *[1] * (len(values.shape) - 1)])
    return tf.tensor_scatter_nd_add(a, index[:, None], tf.where(inside, values, tf.zeros((), values.dtype)))


def after(*arrays: Any) -> Any:
    return tf.control_dependencies(arrays)


def wide(a: Any) -> Any:
    return tf.cast(a, tf.float32) if a.dtype.size < 4 else a


def index(labels: Any) -> Any:
    return tf.cast(labels, tf.int64)


def numbered(a: Any) -> Any:
    return tf.range(tf.shape(a, tf.int64)[0])


def zeros(x: Any) -> Any:
    return tf.zeros(tf.shape(x)[:1], tf.float32 if x.dtype.size < 4 else x.dtype)


def fold(count: Any, size: int, step: Step, carry: Carry, likes: Sequence[Any] = ()) -> Folded:
    one = isinstance(count, int) and count <= size  # is in no loop
    full, rest = (0, count) if one else (count // size, count % size)
    parts: list[Any] = []
    if tf.executing_eagerly():
        for i in range(full):
            carry, blocks = step(i * size, size, carry)
            parts.append(_cast(blocks, likes))
    elif not isinstance(full, int) or full > 0:
        carry, blocks = _looped(full, size, step, carry, likes)
        parts.append(blocks)
    if not isinstance(rest, int) or rest > 0 or not parts:
        carry, blocks = step(full * size, rest, carry)
        parts.append(_cast(blocks, likes))
    return carry, parts[0] if len(parts) == 1 else tuple(tf.concat(blocks, 0) for blocks in zip(*parts))


def _looped(count: Any, size: int, step: Step, carry: Carry, likes: Sequence[Any]) -> Folded:
    """Go through the whole chunks in a loop of the graph."""
    arrays = tuple(
        tf.TensorArray(like.dtype, size=count, element_shape=(size, *like.shape[1:])) for like in likes
    )

    def turn(i: Any, carry: Carry, arrays: Any) -> Any:
        with _UNRECORDED():  # the loop is differentiated; an accumulator that sees inside fails at its arrays
            carry, blocks = step(i * size, size, carry)
            blocks = _cast(blocks, likes)
            return i + 1, carry, tuple(a.write(i, block) for a, block in zip(arrays, blocks))

    _, carry, arrays = tf.while_loop(
        lambda i, *_: i < count,
        turn,
        (tf.constant(0), carry, arrays),
        parallel_iterations=1,
        maximum_iterations=count if isinstance(count, int) else None,
    )
    return carry, tuple(tf.reshape(a.stack(), [-1, *_shape(like)[1:]]) for a, like in zip(arrays, likes))


def _cast(blocks: Sequence[Any], likes: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tf.cast(block, like.dtype) for block, like in zip(blocks, likes))


def rows(a: Any, start: Any, size: Any) -> Any:
    shape = _shape(a)
    return tf.slice(a, [start, *[0] * (len(shape) - 1)], [size, *shape[1:]])


def _shape(a: Any) -> list[Any]:
    return [tf.shape(a)[i] if n is None else n for i, n in enumerate(a.shape)]


def length(a: Any) -> Any:
    return tf.shape(a)[0] if a.shape[0] is None else int(a.shape[0])


def product(a: Any, b: Any) -> Any:
    return tf.matmul(wide(a), wide(b), transpose_b=True)


def into(g: Any, w: Any) -> Any:
    return tf.matmul(wide(g), wide(w))


def across(g: Any, x: Any) -> Any:
    return tf.matmul(g, wide(x), transpose_a=True)


def sums_of(w: Any) -> Any:
    return tf.zeros_like(wide(w))


def fused(
    z: Any, labels: Any, *, cap: float | None, smoothing: float, z_loss: float
) -> tuple[Any, list[Any], None] | None:
    if cap is not None or smoothing or z_loss or z.dtype.size < 4:
        return None
    index = _clipped(z, labels)  # one that does not count weighs 0, one outside NaN
    made = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=z, labels=index)
    return made.loss, [made.backprop], None


def _inside(z: Any, places: Any) -> tuple[Any, Any]:
    """Give an index that every row has, and where it is the place that was meant."""
    index = _clipped(z, places)
    each = tf.range(tf.cast(tf.shape(z)[0], places.dtype))
    return tf.stack([each, index], 1), places == index


def _clipped(z: Any, places: Any) -> Any:
    # a size that is known asks nothing of z, which can be written over only while nobody else reads it
    count = tf.shape(z)[1] if z.shape[1] is None else z.shape[1]
    return tf.clip_by_value(places, 0, tf.cast(count - 1, places.dtype))


def picked(z: Any, labels: Any, start: Any) -> Any:
    index, inside = _inside(z, labels - tf.cast(start, labels.dtype))
    return tf.where(inside, tf.gather_nd(z, index), tf.zeros((), z.dtype))


def add_picked(z: Any, labels: Any, start: Any, values: Any) -> Any:
    index, inside = _inside(z, labels - tf.cast(start, labels.dtype))
    return tf.tensor_scatter_nd_add(z, index, tf.where(inside, values, tf.zeros((), z.dtype)))


def assert_none(bad: Any, text: str) -> None:
    tf.debugging.Assert(tf.logical_not(tf.reduce_any(bad)), [text])


def is_near(x: Any) -> bool:
    return not tf.config.list_logical_devices("GPU")
