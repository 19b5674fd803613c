"""Push tangents through what a pullback did to its cotangents, by differentiating that."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import tensorflow as tf

from pullback.hosts.tensorflow import private
from pullback.hosts.tensorflow.captures import differentiable


class Transpose:
    """Open it, pull cotangents back, then push tangents of what arrived: a linear map and its transpose.

    In eager mode a tape follows the pullback. A graph remembers by itself what was added to it; in a graph
    where nobody `alone` differentiates the tangents, no accumulator follows either: it would fail at loops.
    """

    def __init__(self, cotangents: Sequence[Any], *, alone: bool) -> None:
        self._cotangents = cotangents
        self._tape = tf.GradientTape() if tf.executing_eagerly() else None
        self._unrecorded = private.only_own_tapes() if alone and self._tape is None else None

    def __enter__(self) -> Transpose:
        with contextlib.ExitStack() as opened:
            if self._tape is not None:
                opened.enter_context(self._tape)
                self._tape.watch([c for c in self._cotangents if differentiable(c)])
            elif self._unrecorded is not None:
                opened.enter_context(self._unrecorded)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, at)

    def push(self, results: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Give the tangents of the outputs, which stand where the cotangents did."""
        zero = tf.UnconnectedGradients.ZERO
        if self._tape is not None:
            return self._tape.gradient(
                results, self._cotangents, output_gradients=tangents, unconnected_gradients=zero
            )
        return tf.gradients(results, self._cotangents, tangents, unconnected_gradients=zero)
