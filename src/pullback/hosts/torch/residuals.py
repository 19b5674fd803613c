"""Taking the tensors out of what a pullback keeps, and putting them back.

A function that `grad` is keeps its tensors in closure cells. PyTorch must hold them instead: it frees them
after the backward pass, sees when one is changed in place, and does not hold an output that holds the node
that holds the output. So a closure is emptied into `save_for_backward`, and built again from what comes back.
What cannot be looked into (an object of the user's) stays as it is; an output that it holds is watched.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any

import torch

from pullback.hosts.closures import Build, Taker
from pullback.hosts.operation import Operation, Pullback


class First(threading.local):
    """What bodies keep for their `grad`, for a transform that runs them again: (call, tensors, all else)."""

    notes: list[tuple[Any, list[Any], list[Any]]] | None = None


first = First()


class Kept:
    """The pullback of one call without its tensors."""

    __slots__ = ("_pull", "_rebuild", "_watched", "operation", "saved")

    operation: Operation
    saved: Sequence[Any]  # the inputs, and behind them what `grad` keeps, until the node has them
    _pull: Pullback
    _rebuild: Build | None
    _watched: Sequence[tuple[Any, int]]

    def take(self, pull: Pullback, given: Sequence[Any], inputs: Sequence[Any]) -> None:
        """Take the tensors out of a pullback; `inputs` stand for those that the body was given."""
        self._rebuild, self._watched = None, ()
        met, grad = list(given), pull.grad
        if grad is not None:
            body = self.operation.plan.rule.function
            met, rest, self._rebuild = parts(grad, given, body)
            if first.notes is not None:
                first.notes.append((self.operation, met[len(given) :], rest))
        self._pull = pull.made_of((), grad if self._rebuild is None else None)
        self.saved = [*inputs, *met[len(given) :]]

    def watch(self, outputs: list[Any]) -> None:
        """Watch the outputs that somebody else keeps too: an object of the user's, or the program itself."""
        for i in range(len(outputs)):
            output = outputs[i]
            # Nobody else keeps it if the list, the name `output` and the argument of `getrefcount` are all.
            if sys.getrefcount(output) > 3 and not any(output is t for t in self.saved):
                self._watched = [*self._watched, (output, output._version)]
                outputs[i] = output.detach()

    def require(self, variables: Sequence[Any]) -> None:
        """Raise unless the pullback has a place for the gradients of these captured variables."""
        self.refilled(self.saved, 0).require(variables)

    def refilled(self, saved: Sequence[Any], count: int) -> Pullback:
        """Give the pullback with its tensors in place: a new one, for two threads may go through a graph."""
        if self._watched:
            self._require_unchanged()
        pull = self._pull
        return pull.made_of(saved[:count], pull.grad if self._rebuild is None else self._rebuild(saved))

    @property
    def reruns(self) -> bool:
        """Tell whether the pullback runs the body again by itself, and keeps nothing that it computed."""
        return self._pull.reruns

    def _require_unchanged(self) -> None:
        for tensor, version in self._watched:
            if tensor._version != version:
                raise RuntimeError(
                    f"{self.operation.where}: one of the variables needed for gradient computation has been "
                    "modified by an inplace operation: an output that `grad` keeps, of shape "
                    f"{tuple(tensor.shape)}, is at version {tensor._version}; expected {version} instead"
                )


def parts(grad: Any, inputs: Sequence[Any], body: Any) -> tuple[list[Any], list[Any], Build | None]:
    """Take a `grad` apart: its tensors, the inputs first; all else in it; and how to build it again."""
    taker = Taker(torch.is_tensor, body, inputs)
    recipe: Any = taker.grad(grad)
    return taker.saved, list(taker.rest.values()), recipe
