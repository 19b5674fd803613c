"""What is known of the next derivative, put on cotangents that somebody records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.hosts import refusals
from pullback.hosts.operation import Cotangents, Derived, Operation, Pullback, filled
from pullback.hosts.torch import pinned, state, surroundings


def again(
    operation: Operation,
    inputs: list[Any],
    variables: Sequence[Any],
    cotangents: Sequence[Any],
    drawn: Any,
    kept: Pullback | None,
) -> list[Any]:
    """Pull cotangents back while somebody records it: the body runs again, recorded too."""
    with surroundings.redrawn(operation, drawn):
        pull = rerun(operation, inputs)
    if kept is None:
        got = pull(cotangents, variables)
    else:
        got = pinned.pull(operation, kept, pull, inputs, cotangents, variables)
    return following(operation, inputs, filled(pull, cotangents), got, variables) + got.variables


def rerun(operation: Operation, tensors: list[Any]) -> Pullback:
    """Run a body once more for its pullback, and leave the state that it changes as it was."""
    with state.put_back():
        return operation.forward(tensors)[1]


def following(
    operation: Operation,
    tensors: list[Any],
    cotangents: list[Any],
    got: Cotangents,
    variables: Sequence[Any] = (),
) -> list[Any]:
    """Refuse the next derivative, give it the user's `gradgrad`, or leave it to PyTorch."""
    if operation.order == 1:
        results = [cotangent for cotangent in got.inputs if cotangent is not None]
        last = _Last(operation, len(results))
        return _laid(got.inputs, operation.host.apply(last, results + tensors + cotangents))
    if got.second is None:
        return got.inputs
    second = operation.second(len(cotangents), variables)
    return _laid(got.inputs, operation.host.apply(second, tensors + cotangents))


def _laid(inputs: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    rest = iter(given)
    return [None if cotangent is None else next(rest) for cotangent in inputs]


class _Last(Derived):
    """Cotangents that have no derivative, also where the body cut them off: (results, sources) ↦ results."""

    def __init__(self, operation: Operation, count: int) -> None:
        super().__init__(operation)
        self.operation = operation
        self.identity = _Last
        self.has_pushforward = True
        self.count = count

    def forward(self, tensors: Sequence[Any]) -> tuple[list[Any], Pullback]:
        return list(tensors[: self.count]), _Refusing(self.operation)

    def pushforward(self, tensors: Sequence[Any], tangents: Sequence[Any]) -> list[Any] | None:
        raise refusals.second_order(self.operation)


class _Refusing(Pullback):
    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def zeros(self) -> list[Any]:
        raise refusals.second_order(self.operation)

    def require(self, variables: Sequence[Any]) -> None:
        raise refusals.second_order(self.operation)

    def __call__(self, cotangents: Sequence[Any], variables: Sequence[Any] = ()) -> Cotangents:
        raise refusals.second_order(self.operation)
