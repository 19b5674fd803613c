"""An operation on a whole batch: what `vmap` hands to the transform outside of it.

The body runs under a `vmap` of its own, one for the values and one for each pullback. What the body keeps
belongs to the first of these, so a pullback runs it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pullback.hosts.operation import Around, Cotangents, Operation, Pullback, Rerun, filled
from pullback.hosts.torch import captures, private, state, surroundings
from pullback.hosts.torch.outputs import apart


def whole(tensor: Any, level: int, size: int) -> Any:
    """Give the batch that a tensor is an example of, its first axis that of the batch."""
    value, axis = private.unbatched(tensor, level)
    return value.expand(size, *value.shape) if axis is None else value.movedim(axis, 0)


class Batched(Around):
    """The operation (batches) ↦ batches."""

    def __init__(self, operation: Operation, randomness: str) -> None:
        super().__init__(operation)
        self.randomness = randomness
        self.state: Any = None

    def mapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Run a function on each example."""
        return torch.vmap(function, randomness=self.randomness)

    def forward(self, tensors: Sequence[Any]) -> tuple[list[Any], Pullback]:
        self.state = surroundings.drawn(self.inner)
        outputs = self.mapped(lambda *xs: tuple(apart(captures.below(self.inner, list(xs))[0], xs)))(*tensors)
        return list(outputs), _BatchedPullback(self, tensors, list(map(self.host.outline, outputs)))

    def pushforward(self, tensors: Sequence[Any], tangents: Sequence[Any]) -> list[Any] | None:
        count = len(tensors)

        def push(*both: Any) -> Any:
            pushed = self.inner.pushforward(list(both[:count]), list(both[count:]))
            return tuple(pushed or ())

        if not self.has_pushforward:
            return None
        return list(self.mapped(push)(*tensors, *tangents))

    def second(self, count: int, variables: Sequence[Any] = ()) -> Operation:
        return Batched(self.inner.second(count, variables), self.randomness)

    def key(self, extra: Any) -> Any:
        return self.inner.key(("batched", extra))


class _BatchedPullback(Rerun):
    """Run the body and its pullback on each example."""

    def __call__(self, cotangents: Sequence[Any], variables: Sequence[Any] = ()) -> Cotangents:
        batched, inner, count = self.operation, self.operation.inner, len(self.tensors)
        given: list[int] = []
        second: list[Any] = []

        def pulled(*both: Any) -> Any:
            with state.put_back():
                pull = inner.forward(list(both[:count]))[1]
            got = pull(both[count:])
            given[:] = [i for i, cotangent in enumerate(got.inputs) if cotangent is not None]
            second[:] = [got.second]
            return tuple(got.inputs[i] for i in given)

        with surroundings.redrawn(inner, batched.state):
            found = batched.mapped(pulled)(*self.tensors, *filled(self, cotangents))
        inputs: list[Any] = [None] * count
        for i, cotangent in zip(given, found):
            inputs[i] = cotangent
        return Cotangents(inputs, [], second[0])
