"""A graft: the values of one computation, with cotangents that go elsewhere.

(values, sources) ↦ values. The pullback says what reaches the values, and through them whatever they were
computed from, and what reaches the sources. A function is called as it stands, outside of any rule, so its
variables, its state and its random numbers behave as they always do; only the way back is grafted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback import contract, tree
from pullback.call import Call
from pullback.hosts.base import Cotangents, Derived, Function, Pullback, Tensor, filled

Pull = Callable[["Graft", Sequence[Tensor], Sequence[Tensor]], list[Any]]


class Graft(Derived):
    """The operation (values, sources) ↦ values of one call."""

    def __init__(self, call: Call, count: int, pull: Pull) -> None:
        super().__init__(call)
        self.name = call.name
        self.identity = Graft  # its forward has no code of the user's to listen to
        self.memo = call.memo
        self.call = call
        self.count = count
        self.pull = pull
        self.busy = False

    def forward(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Pullback]:
        return list(tensors[: self.count]), GraftPullback(self, tensors)

    def again(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Give the values as results of this operation, so that they depend on the sources as it says.

        Forward mode pulls while the operation is applied: there the bare values end the circle.
        """
        if self.busy:
            return list(tensors[: self.count])
        self.busy = True
        try:
            return self.host.apply(self, list(tensors))
        finally:
            self.busy = False

    def key(self, extra: Any) -> Any:
        return self.call.key(extra)


class GraftPullback:
    """Send cotangents of the values where the graft says: one, or None, per value and source."""

    def __init__(self, graft: Graft, tensors: Sequence[Tensor]) -> None:
        self.graft = graft
        self.tensors = tensors

    def rebind(self, tensors: Sequence[Tensor]) -> None:
        """Take the tensors of the operation from a host that keeps them elsewhere, or let them go."""
        self.tensors = tensors
        self.graft.call.tensors = ()

    def zeros(self) -> list[Tensor]:
        host = self.graft.host
        return [host.zeros(host.outline(value)) for value in self.tensors[: self.graft.count]]

    def require(self, variables: Sequence[Any]) -> None:
        raise AssertionError("a graft reads no variable")

    def __call__(self, cotangents: Sequence[Tensor | None], variables: Sequence[Any] = ()) -> Cotangents:
        return Cotangents(self.graft.pull(self.graft, self.tensors, filled(self, cotangents)), [])


def values_of(call: Call) -> list[Tensor]:
    """Run the function of a call, its inputs cut off, and keep the structure of its outputs on the call."""
    host, rule = call.host, call.rule
    stopped = [host.arrays.stop(x) if host.differentiable(x) else x for x in call.tensors]
    args, kwargs = call.arguments(stopped)
    outputs = host.run(rule.body, args, kwargs, rule.where)
    leaves, call.output_tree = tree.flatten(outputs)
    call.statics, flat = contract.tensor_outputs(leaves, host, rule, call.tensors)
    return flat


def made_of(function: Function, *parts: Any) -> Function:
    """Tell what a function calls, so that a model it becomes part of knows the weights in it."""
    function.parts = parts  # type: ignore[attr-defined]
    return function


def without_pushforward(function: Function) -> Function:
    """Take the decorator for a pushforward away where forward mode is derived from another function."""
    del function.pushforward  # type: ignore[attr-defined]
    return function
