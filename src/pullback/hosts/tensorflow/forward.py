"""Forward mode: the user's pushforward, or the transpose of a linear pullback.

The transpose of a map that is not linear is a plausible wrong number, so every call proves that the pullback
is linear, or measures it (`linearity.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.hosts import linear as measure
from pullback.hosts.operation import Cotangents, Derived, Operation, Pullback, filled, fitted
from pullback.hosts.tensorflow import linearity, private
from pullback.hosts.tensorflow.captures import differentiable
from pullback.hosts.tensorflow.transpose import Transpose

_FAILURES = (TypeError, ValueError, tf.errors.OpError)  # of a body at random inputs


def push(
    operation: Operation, pull: Pullback, tensors: list[Any], variables: list[Any], tangents: Any
) -> list[Any]:
    """Take tangents of the inputs, and of captured variables behind them, to tangents of the outputs."""
    given = operation.pushforward(tensors, tangents[: len(tensors)])
    if given is not None:
        return fitted(given, pull.zeros(), operation)
    # A tape inside an accumulator's own computation records nothing unless its state is set aside.
    with private.set_accumulators_aside():
        return _transpose(operation, pull, tensors, variables, tangents)


def _transpose(
    operation: Operation, pull: Pullback, tensors: list[Any], variables: list[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Pull the tangents back through the pullback: for a linear map, its transpose."""
    cotangents = linearity.base(pull.zeros())
    with Transpose(cotangents, alone=_alone(tensors, variables, tangents)) as transpose:
        with linearity.Proof(cotangents) as proof:
            got = pull(cotangents, variables)
        pulled = got.inputs + got.variables
        factor = None if proof.reaches(pulled) else require_linear(operation, pull, tensors, variables)
        pairs = [(c, t) for c, t in zip(pulled, tangents) if c is not None]
        moved = transpose.push([c for c, _ in pairs], [t for _, t in pairs])
    return [linearity.trusted(tangent, factor) for tangent in moved]


def _alone(tensors: Sequence[Any], variables: Sequence[Any], tangents: Sequence[Any]) -> bool:
    """Tell whether one accumulator, in a graph, is all that follows what its tangents are made from."""
    if tf.executing_eagerly():
        return False  # a tape follows there, whoever else does
    read = [tf.convert_to_tensor(variable) for variable in variables]
    sources = [x for x in (*tensors, *read, *tangents) if x is not None]
    return private.is_followed(sources) < private.BY_SEVERAL


class Transposable(Derived):
    """A pullback, (cotangents, tensors) ↦ cotangents, whose own pullback is the user's pushforward.

    An accumulator outside a `tf.function` transposes the gradient of the whole function. Passing the
    cotangents through this operation makes the transpose what the user said. The tensors of the call are
    inputs too: the transpose is computed in another graph than theirs, and reaches them through this one.
    """

    def __init__(self, operation: Operation, pull: Pullback, count: int, variables: list[Any]) -> None:
        super().__init__(operation)
        self.operation = operation
        self.pull = pull
        self.count = count  # of the cotangents
        self.variables = variables

    def forward(self, tensors: Sequence[Any]) -> tuple[list[Any], Pullback]:
        got = self.pull(tensors[: self.count], self.variables)
        self.given = [i for i, cotangent in enumerate(got.inputs) if cotangent is not None]
        return [got.inputs[i] for i in self.given], _Pushing(self, list(tensors[self.count :]))


class _Pushing(Pullback):
    def __init__(self, of: Transposable, tensors: list[Any]) -> None:
        self.of = of
        self.tensors = tensors

    def zeros(self) -> list[Any]:
        return [tf.zeros_like(self.tensors[i]) for i in self.of.given]

    def require(self, variables: Sequence[Any]) -> None:
        """Accept captured variables: a pushforward moves arguments only."""

    def __call__(self, cotangents: Sequence[Any], variables: Sequence[Any] = ()) -> Cotangents:
        tangents = [tf.zeros_like(tensor) for tensor in self.tensors]
        for i, cotangent in zip(self.of.given, filled(self, cotangents)):
            tangents[i] = cotangent
        pushed = self.of.operation.pushforward(self.tensors, tangents)
        assert pushed is not None
        pushed = fitted(pushed, self.of.pull.zeros(), self.of.operation)
        return Cotangents([*pushed, *[None] * len(self.tensors)], [None] * len(variables))


def require_linear(
    operation: Operation, pull: Pullback, tensors: Sequence[Any], variables: Sequence[Any]
) -> Any:
    """Refuse a pullback that nothing is proved of if it is not linear, now or when the graph runs.

    While a graph is traced it is asked at random inputs: what bends everywhere is an error before it runs.
    """
    if not tf.executing_eagerly():
        kinds = tuple((str(tensor.shape), tensor.dtype) for tensor in tensors)
        measure.require(operation, kinds, lambda: _measure(operation, tensors, variables), _FAILURES)
    return linearity.confirm(operation, pull, variables)


def _measure(operation: Operation, tensors: Sequence[Any], variables: Sequence[Any]) -> str:
    with tf.init_scope():
        rng = np.random.default_rng(20)
        _, pull = operation.forward([_value(tensor, rng) for tensor in tensors])
        zeros = pull.zeros()

        def pulled(cotangents: list[Any]) -> list[Any]:
            got = pull([tf.cast(c, zero.dtype) for c, zero in zip(cotangents, zeros)], variables)
            return [
                None if g is None else tf.cast(g, tf.complex128).numpy() for g in got.inputs + got.variables
            ]

        dtypes = [x.dtype.name for x in (*zeros, *tensors)]
        return measure.measured(pulled, [tuple(zero.shape) for zero in zeros], dtypes)


def _value(tensor: Any, rng: np.random.Generator) -> Any:
    """Give an eager tensor as it is, and random numbers in the place of a symbolic one."""
    if hasattr(tensor, "numpy"):
        return tensor
    shape = [3] if tensor.shape.rank is None else [3 if n is None else n for n in tensor.shape]
    if differentiable(tensor):
        return tf.cast(measure.value(shape, rng), tensor.dtype)
    return tf.zeros(shape, tensor.dtype)
