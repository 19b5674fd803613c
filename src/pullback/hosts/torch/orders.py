"""What is known of the next derivative, put on cotangents that somebody records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.hosts.base import Cotangents, Derived, Operation, Pullback, second_order_refused


def following(operation: Operation, tensors: list[Any], cotangents: list[Any], got: Cotangents) -> list[Any]:
    """Refuse the next derivative, give it the user's `gradgrad`, or leave it to PyTorch."""
    if operation.order == 1:
        return _laid(got.inputs, operation.host.apply(_Last(operation, got.inputs), tensors + cotangents))
    if got.second is None:
        return got.inputs
    return _laid(got.inputs, operation.host.apply(operation.second(len(cotangents)), tensors + cotangents))


def _laid(inputs: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    rest = iter(given)
    return [None if cotangent is None else next(rest) for cotangent in inputs]


class _Last(Derived):
    """Cotangents that have no derivative: (tensors, cotangents) ↦ cotangents, already computed."""

    def __init__(self, operation: Operation, results: Sequence[Any]) -> None:
        super().__init__(operation)
        self.operation = operation
        self.identity = _Last
        self.has_pushforward = True
        self.results = [result for result in results if result is not None]

    def forward(self, tensors: Sequence[Any]) -> tuple[list[Any], Pullback]:
        # Cut off: a derivative must come through here, and not past it.
        return [result.detach() for result in self.results], _Refusing(self.operation)

    def pushforward(self, tensors: Sequence[Any], tangents: Sequence[Any]) -> list[Any] | None:
        raise second_order_refused(self.operation)


class _Refusing:
    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def zeros(self) -> list[Any]:
        raise second_order_refused(self.operation)

    def fill(self, cotangents: Sequence[Any]) -> list[Any]:
        raise second_order_refused(self.operation)

    def require(self, variables: Sequence[Any]) -> None:
        raise second_order_refused(self.operation)

    def __call__(self, cotangents: Sequence[Any], variables: Sequence[Any] = ()) -> Cotangents:
        raise second_order_refused(self.operation)
