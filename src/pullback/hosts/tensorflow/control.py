"""Loops, and what must hold, in TensorFlow: in Python in eager mode, operations in a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pullback.hosts.claims import Claim


def loop(
    going: Callable[[list[Any]], Any], step: Callable[[list[Any]], list[Any]], state: list[Any]
) -> list[Any]:
    """Repeat a step while a condition holds."""
    if tf.executing_eagerly():
        while going(state):
            state = step(state)
        return state
    shapes = [tensor.shape for tensor in state]

    def shaped(*state: Any) -> list[Any]:
        found = step(list(state))
        for tensor, shape in zip(found, shapes):
            tensor.set_shape(shape)  # XLA and the loop itself ask that it stays
        return found

    return list(tf.while_loop(lambda *state: going(list(state)), shaped, state))


def repeat(count: int, step: Callable[[Any, list[Any]], list[Any]], state: list[Any]) -> list[Any]:
    """Repeat a step a number of times."""
    if tf.executing_eagerly():
        for i in range(count):
            state = step(i, state)
        return state

    def counted(given: list[Any]) -> list[Any]:
        return [given[0] + 1, *step(given[0], given[1:])]

    return loop(lambda given: given[0] < count, counted, [tf.constant(0, tf.int64), *state])[1:]


def require(claim: Claim, holds: Any, numbers: Sequence[Any], values: list[Any]) -> list[Any]:
    """Give values of which a claim holds; in a graph an assertion, and NaN under XLA, which drops those."""
    if tf.executing_eagerly():
        if not holds:
            raise claim.error(numbers)
        return values
    said = tf.debugging.Assert(holds, [claim.text(len(numbers)), "numbers", *numbers])
    with tf.control_dependencies([said]):
        factor = tf.where(holds, 1.0, float("nan"))
    return [value * tf.cast(factor, value.dtype) for value in values]
