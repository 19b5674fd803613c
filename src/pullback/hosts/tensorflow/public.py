"""The way without private functions: `tf.custom_gradient` over the flat operation.

Used where `private.py` does not know the TensorFlow at hand. The contract holds here too; what is lost is
speed, tape memory, the refusal of captured tensors, and forward mode, which `tf.custom_gradient` ignores.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pullback.hosts import refusals
from pullback.hosts.operation import Operation, filled


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation under `tf.custom_gradient`."""

    @tf.custom_gradient
    def native(*tensors: Any) -> Any:
        outputs, pull = operation.forward(list(tensors))

        def grad(*cotangents: Any, variables: Any = ()) -> Any:
            if variables:
                pull.require(variables)
            dense = filled(pull, [tf.convert_to_tensor(c) if c is not None else None for c in cotangents])
            got = pull(dense, variables or ())
            inputs = got.inputs
            if operation.order == 1:
                inputs = [None if c is None else _forbidden(c, operation) for c in inputs]
            elif got.second is not None:
                inside = [tf.identity(tensor) for tensor in tensors]  # of the graph that `grad` runs in
                given = iter(apply(operation.second(len(dense)), inside + dense))
                inputs = [None if c is None else next(given) for c in inputs]
            return (inputs, got.variables) if variables else inputs

        return outputs, grad

    return list(native(*tensors))


def _forbidden(cotangent: Any, operation: Operation) -> Any:
    @tf.custom_gradient
    def refuse(cotangent: Any) -> Any:
        def grad(_: Any) -> Any:
            raise refusals.second_order(operation)

        return tf.identity(cotangent), grad

    return refuse(cotangent)
