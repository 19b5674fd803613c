"""Gradients in TensorFlow, as a log hears them.

In eager mode Python looks. In a graph the numbers are computed in it, and kept in variables, because that is
what every compiler of graphs takes: XLA calls no Python. A named place is in every graph, behind a condition
on how often the open logs want to know; so a graph that was traced before a log, or under another one, is
heard. A log reads the variables when it is asked, and when it closes: they hold the last 256 rows.
"""

from __future__ import annotations

import math
import threading
import weakref
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.define import custom_gradient
from pullback.hosts.tensorflow import callback, private
from pullback.watching import watchpoints
from pullback.watching.framework import Framework
from pullback.watching.hearing import HEARING
from pullback.watching.log import Log
from pullback.watching.record import BINS, SAMPLE, SHIFT, WIDTH

CAPACITY = 256  # rows

# ── one row ──────────────────────────────────────────────────────────────────────────────────────────────


def _flat(gradient: Any) -> Any:
    """Give the elements of a gradient as one vector; of rows that were looked up, those."""
    x = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    x = tf.stop_gradient(x)
    if x.dtype.is_complex:
        x = tf.stack([tf.math.real(x), tf.math.imag(x)])
    return tf.reshape(tf.cast(x, tf.float64 if x.dtype == tf.float64 else tf.float32), [-1])


def row(x: Any) -> Any:
    """Compute the numbers of a vector, where it is."""
    total, half = tf.reduce_sum(x), tf.nn.l2_loss(x)
    # a NaN or an infinity is in the sum; squares of very large and very small numbers are lost
    usual = tf.math.is_finite(total) & (half > 1e-30) & (half < 1e30)
    heads = tf.cond(usual, lambda: _usual(x, total, half), lambda: _unusual(x))
    size = tf.size(x, tf.int64)
    step = tf.where(size > SAMPLE, tf.bitwise.bitwise_or((size + SAMPLE - 1) // SAMPLE, 1), 1)
    part = x[:: tf.cast(step, tf.int32)]
    sizes = tf.where(tf.math.is_finite(part), tf.abs(part), tf.zeros_like(part))
    powers = tf.math.log(sizes) * tf.cast(1 / math.log(10), x.dtype)
    bins = tf.clip_by_value(tf.floor(powers) + SHIFT, 0, BINS - 1)
    unweighted = tf.zeros([0], tf.int32)
    decades = tf.raw_ops.DenseBincount(input=tf.cast(bins, tf.int32), size=BINS, weights=unweighted)
    zeros = tf.size(sizes, tf.int64) - tf.math.count_nonzero(sizes)  # they stood in the first bin
    counted = tf.cast(decades, tf.int64) - tf.one_hot(0, BINS, dtype=tf.int64) * zeros
    return tf.concat([heads, tf.cast(counted, tf.float64)], 0)


def _heads(real: list[Any], counts: list[Any]) -> Any:
    return tf.concat([tf.cast(tf.stack(part), tf.float64) for part in (real, counts)], 0)


def _usual(x: Any, total: Any, half: Any) -> Any:
    """Take the shorter way: all is finite, and of ordinary size."""
    size = tf.size(x, tf.int64)
    none = tf.zeros_like(size)
    real = [tf.sqrt(2 * half), tf.reduce_min(x), tf.reduce_max(x), total / tf.cast(size, x.dtype)]
    return _heads(real, [size, none, none, size - tf.math.count_nonzero(x)])


def _unusual(x: Any) -> Any:
    finite = tf.math.is_finite(x)
    clean = tf.where(finite, x, tf.zeros_like(x))
    largest = tf.maximum(tf.reduce_max(tf.abs(clean)), 0)  # of nothing: −inf
    scale = tf.where(largest > 0, largest, tf.ones_like(largest))
    size, count = tf.size(x, tf.int64), tf.math.count_nonzero(finite)
    far = tf.fill(tf.shape(x), tf.cast(float("inf"), x.dtype))
    real = [
        scale * tf.sqrt(tf.reduce_sum(tf.square(clean / scale))),
        tf.reduce_min(tf.where(finite, x, far)),
        tf.reduce_max(tf.where(finite, x, -far)),
        scale * tf.reduce_sum(clean / scale) / tf.cast(tf.maximum(count, 1), x.dtype),
    ]
    nan = tf.math.count_nonzero(tf.math.is_nan(x))
    return _heads(real, [size, nan, size - count - nan, count - tf.math.count_nonzero(clean)])


# Traced once, and called by every graph.
_rows = {
    dtype: tf.function(row, input_signature=[tf.TensorSpec([None], dtype)], autograph=False)
    for dtype in (tf.float32, tf.float64)
}


def _row_of(gradient: Any) -> Any:
    x = _flat(gradient)
    return _rows[x.dtype](x)


# ── graphs ───────────────────────────────────────────────────────────────────────────────────────────────


def _variable(value: Any, dtype: Any) -> Any:
    """Make a variable outside of whatever is traced, on a thread that knows of no function and no strategy.

    A `tf.function` that sees one made is traced a second time.
    """
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(tf.Variable(value, trainable=False, dtype=dtype)))
    thread.start()
    thread.join()
    return made[0]


class _Buffer:
    """The last rows of a watchpoint, in variables; the arrival of each stands in front of it."""

    def __init__(self) -> None:
        self.arrivals = _variable(0, tf.int64)
        self.written = _variable(0, tf.int64)
        self.rows = _variable(np.zeros([CAPACITY, 1 + WIDTH]), tf.float64)
        self.read = 0

    def keep(self, gradient: Any, period: Any) -> Any:
        """Count one arrival, and keep its row if it is one that is wanted."""
        arrival = self.arrivals.assign_add(1) - 1

        def kept() -> Any:
            numbers = tf.concat([[tf.cast(arrival, tf.float64)], _row_of(gradient)], 0)
            at = self.written.assign_add(1) - 1
            put = tf.raw_ops.ResourceScatterNdUpdate(
                ref=self.rows.handle, indices=[[at % CAPACITY]], updates=[numbers]
            )
            with tf.control_dependencies([put]):  # a backward graph runs what its results need, only
                return tf.identity(at >= 0)

        return tf.cond(tf.equal(arrival % period, 0), kept, _nothing)

    def new(self) -> tuple[list[Any], int]:
        """Give the rows that were not read yet, and how many of them were overwritten."""
        written = int(self.written.numpy())
        start = max(self.read, written - CAPACITY)
        lost = start - self.read
        self.read = written
        if start == written:
            return [], lost
        rows = self.rows.numpy()
        return [rows[i % CAPACITY].copy() for i in range(start, written)], lost


def _nothing() -> Any:
    return tf.constant(False)


class _Graphs:
    """What all graphs of the process share: each how many arrivals is wanted, 0 for none; and the rows."""

    def __init__(self) -> None:
        self.period: Any = None
        self.buffers: dict[int, _Buffer] = {}
        self.began: weakref.WeakKeyDictionary[Log, dict[int, int]] = weakref.WeakKeyDictionary()
        self.lock = threading.RLock()

    def buffer(self, number: int) -> _Buffer:
        with self.lock:
            if self.period is None:
                self.period = _variable(self.wanted(), tf.int64)
            if number not in self.buffers:
                self.buffers[number] = _Buffer()
            return self.buffers[number]

    def wanted(self) -> int:
        """Say each how many arrivals is wanted: all of them, unless one log alone counts from the first."""
        logs = HEARING.logs
        alone = len(logs) == 1 and not any(self.began.get(logs[0], {}).values())
        return (logs[0].every if alone else 1) if logs else 0

    def opened(self) -> None:
        with self.lock:
            logs = HEARING.logs
            for log in [log for log in logs if log not in self.began]:
                if len(logs) == 1:
                    for buffer in self.buffers.values():
                        buffer.arrivals.assign(0)
                self.began[log] = {n: int(b.arrivals.numpy()) for n, b in self.buffers.items()}
            if self.period is not None:
                self.period.assign(self.wanted())

    def drain(self) -> None:
        with self.lock:
            for number, buffer in self.buffers.items():
                rows, lost = buffer.new()
                for log in HEARING.logs:
                    log.lost += lost
                    began = self.began.get(log, {}).get(number, 0)
                    for numbers in rows:
                        log.late(number, int(numbers[0]) - began, numbers[1:])


_GRAPHS = _Graphs()


@tf.autograph.experimental.do_not_convert
def _look_in_graph(gradient: Any, number: int) -> Any:
    """Look at a gradient when the graph runs; what is given back waits for that."""
    if private.AVAILABLE and private.saving():
        return gradient
    if private.AVAILABLE and private.in_gradient_of_loop():
        if callback.compiling():
            HEARING.say(f"{watchpoints.of(number).name}: in a loop that XLA compiles; it is not heard there")
            return gradient
        done = _tell(gradient, number)
    else:
        buffer = _GRAPHS.buffer(number)
        period = _GRAPHS.period.read_value()
        done = tf.cond(period > 0, lambda: buffer.keep(gradient, period), _nothing)
    HEARING.pulled(number)
    with tf.control_dependencies([done]):
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(tf.identity(gradient.values), gradient.indices, gradient.dense_shape)
        return tf.identity(gradient)


def _tell(gradient: Any, number: int) -> Any:
    """Ask Python, and tell it: the gradient of a loop can hold no variable that the loop does not."""

    def asked() -> Any:
        return np.bool_(HEARING.asked(number))

    def told(numbers: Any) -> Any:
        HEARING.told(number, numbers)
        return np.bool_(True)

    def tell() -> Any:
        return tf.numpy_function(told, [_row_of(gradient)], tf.bool)

    return tf.cond(tf.numpy_function(asked, [], tf.bool), tell, _nothing)


# ── watchpoints ──────────────────────────────────────────────────────────────────────────────────────────


@custom_gradient
def _seen(x: Any, number: int) -> Any:
    def grad(dy: Any) -> Any:
        return {"x": FRAMEWORK.look(dy, number)}

    return x, grad


@_seen.pushforward
def _pushed(dx: Any, x: Any, number: int) -> Any:
    return dx


class TensorFlow(Framework):
    """Look by the gradient of a rule."""

    def seen(self, x: Any, number: int) -> Any:
        if tf.executing_eagerly():
            if not HEARING.open or (private.AVAILABLE and not private.could_record()):
                return x
        elif private.AVAILABLE and private.saving():
            return x
        if not (x.dtype.is_floating or x.dtype.is_complex):
            return x
        HEARING.ran(number)
        return _seen(x, number)

    def look(self, gradient: Any, number: int) -> Any:
        if not tf.executing_eagerly():
            return _look_in_graph(gradient, number)
        if HEARING.open:
            HEARING.heard(number, lambda: _row_of(gradient), lambda numbers: numbers.numpy())
        return gradient

    def opened(self) -> None:
        _GRAPHS.opened()

    def drain(self) -> None:
        _GRAPHS.drain()


FRAMEWORK = TensorFlow()
