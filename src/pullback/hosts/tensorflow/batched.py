"""`tf.vectorized_map`: keep the rule when TensorFlow rewrites a graph for a whole batch.

The rewriting replaces every operation by a batched one and forgets whose gradient it had: the body would
silently be differentiated instead of the rule. Our operation is therefore converted to one that has the
rule's gradient too, taken element by element in a vectorized map of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pullback.errors import DerivativeError, ForwardModeError
from pullback.hosts.operation import Operation
from pullback.hosts.tensorflow import private


@dataclass(eq=False)
class Batched:
    """The gradient of a traced call that was rewritten for a batch."""

    operation: Operation
    count: int  # of the outputs
    variables: Sequence[Any]
    sources: Sequence[Any]
    depth: int  # maps inside maps

    def batched(self, sources: Sequence[Any]) -> Batched:
        return Batched(self.operation, self.count, self.variables, sources, self.depth + 1)

    def by_tape(self, *cotangents: Any) -> list[Any]:
        if self.variables:
            raise DerivativeError.about(
                self.operation.where,
                found="the rule captures variables, and was differentiated through tf.vectorized_map",
                expected="variables among the arguments",
                fix="pass the variables as arguments, or use tf.map_fn",
            )
        outputs, inputs = list(self.sources[: self.count]), list(self.sources[self.count :])
        dense = [tf.zeros_like(y) if c is None else c for y, c in zip(outputs, cotangents)]
        return [None] * self.count + list(self._map(inputs, dense, self.depth))

    def _map(self, inputs: list[Any], cotangents: list[Any], depth: int) -> Any:
        if depth:
            return tf.vectorized_map(
                lambda parts: self._map(list(parts[0]), list(parts[1]), depth - 1), (inputs, cotangents)
            )
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = self.operation.host.apply(self.operation, inputs)
        return tape.gradient(outputs, inputs, cotangents, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    def by_graph(self, op: Any, *cotangents: Any) -> list[Any]:
        return self.by_tape(*cotangents)

    def forward(self, *_: Any) -> list[Any]:
        raise ForwardModeError.about(
            self.operation.where,
            found="forward mode was asked for through tf.vectorized_map",
            expected="forward mode outside a vectorized map",
            fix="use tf.map_fn",
        )


def converter(single: Any, attach: Callable[..., list[Any]]) -> Callable[[Any], list[Any]]:
    """Make the converter that TensorFlow's vectorizer looks for on our operation, which `attach` makes."""

    def convert(pfor_input: Any) -> list[Any]:
        pfor_input.stack_inputs()
        sources = [pfor_input.stacked_input(i) for i in range(pfor_input.num_inputs)]
        results = attach(single.batched(sources), sources, tf.compat.v1.get_default_graph())
        return [private.vectorized(result, True) for result in results]

    return convert
