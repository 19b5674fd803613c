"""Captured tensors under a transform: made arguments, since a transform reaches nothing else.

A parameter that a transform differentiates (as `torch.func.functional_call` puts it into a module) is
wrapped for that transform, and the body runs below it. So it becomes an input of the operation, and wherever
the body or `grad` uses it, the tensor of the level that runs is put in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pullback.errors import CapturedVariableError
from pullback.hosts.operation import Around, Cotangents, Operation, Pullback
from pullback.hosts.torch import captures, private
from pullback.tree import put


def closure_convert(operation: Operation, tensors: list[Any]) -> tuple[Operation, list[Any]]:
    """Make captured tensors that belong to a transform, or are differentiated, inputs of the operation."""
    with torch.no_grad():
        found, pull = captures.captured_by(operation, tensors)
    names = {id(tensor): name for name, tensor in reversed(found)}
    outside = [t for _, t in found if private.is_wrapped(t) or t.requires_grad]
    if not outside:
        return operation, tensors
    followed = [tensor for tensor in outside if private.is_followed(tensor)]
    if followed:
        pull = operation.forward(tensors)[1] if pull is None else pull
        try:
            pull.require(followed)
        except CapturedVariableError:
            raise captures.refused(operation, followed[0], names[id(followed[0])]) from None
    return Converted(operation, len(tensors), outside), tensors + outside


class Instead(TorchFunctionMode):
    """Put other tensors in the places of captured ones."""

    def __init__(self, captured: Sequence[Any], tensors: Sequence[Any]) -> None:
        super().__init__()
        self._by_id = dict(zip(map(id, captured), tensors))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = put(lambda x: self._by_id.get(id(x), x), (args, kwargs or {}))
        return func(*args, **kwargs)


class Converted(Around):
    """The operation (tensors, captured) ↦ outputs."""

    def __init__(self, operation: Operation, count: int, captured: list[Any]) -> None:
        super().__init__(operation)
        self.count = count
        self.captured_tensors = captured
        self.followed = [private.is_followed(tensor) for tensor in captured]

    def instead(self, tensors: Sequence[Any]) -> Instead:
        """Let the tensors stand for the captured ones."""
        return Instead(self.captured_tensors, tensors)

    def forward(self, tensors: Sequence[Any]) -> tuple[list[Any], Pullback]:
        with self.instead(tensors[self.count :]):
            outputs, pull = self.inner.forward(list(tensors[: self.count]))
        return outputs, _ConvertedPullback(self, pull, tensors[self.count :])

    def pushforward(self, tensors: Sequence[Any], tangents: Sequence[Any]) -> list[Any] | None:
        with self.instead(tensors[self.count :]):
            return self.inner.pushforward(list(tensors[: self.count]), tangents[: self.count])

    def second(self, count: int, variables: Sequence[Any] = ()) -> Operation:
        return Converted(self.inner.second(count, variables), self.count + count, self.captured_tensors)

    def key(self, extra: Any) -> Any:
        return self.inner.key(("converted", extra))


class _ConvertedPullback(Pullback):
    """Pull back to the captured tensors too, as `variables=`."""

    def __init__(self, converted: Converted, pull: Pullback, captured: Sequence[Any]) -> None:
        self.converted = converted
        self.pull = pull
        self.captured = captured

    def zeros(self) -> list[Any]:
        return self.pull.zeros()

    def __call__(self, cotangents: Sequence[Any], variables: Sequence[Any] = ()) -> Cotangents:
        followed = [t for t, moves in zip(self.captured, self.converted.followed) if moves]
        with self.converted.instead(self.captured):
            got = self.pull(cotangents, followed)
        rest = iter(got.variables)
        captured = [next(rest) if moves else None for moves in self.converted.followed]
        return Cotangents(got.inputs + captured, [], got.second)
