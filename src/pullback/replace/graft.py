"""A graft: the values of one computation, with cotangents that go elsewhere.

(values, sources) ↦ values. The pullback says what reaches the values, and through them whatever they were
computed from, and what reaches the sources. A function is called as it stands, outside of any rule, so its
variables, its state and its random numbers behave as they always do; only the way back is grafted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from pullback import outputs
from pullback.application import Application
from pullback.hosts.operation import Cotangents, Derived, Pullback, Tensor, filled
from pullback.outputs import Outputs
from pullback.plan import Plan
from pullback.typed import DefinedFunction, P, RuleFunction, Y

Pull = Callable[["Graft", Sequence[Tensor], Sequence[Tensor]], list[Any]]


class Graft(Derived):
    """The operation (values, sources) ↦ values of one call."""

    def __init__(self, plan: Plan, outputs: Outputs, count: int, pull: Pull) -> None:
        super().__init__(Application(plan))
        self.name = plan.rule.name
        self.identity = Graft  # its forward has no code of the user's to listen to
        self.memo = plan.rule.memo
        self.outputs = outputs
        self.count = count  # of the values
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

    def applied(self, values: Sequence[Tensor], sources: Sequence[Tensor]) -> Any:
        """Give the outputs of the call, recorded as this operation."""
        return self.outputs.filled(self.host.apply(self, [*values, *sources]))

    def output(self, tensors: Sequence[Tensor]) -> Any:
        """Give the outputs again: not the bare values, whose derivative is the one that is being defined."""
        return self.outputs.filled(self.again(tensors))

    def key(self, extra: Any) -> Any:
        return (extra, *self.plan.key)


class GraftPullback(Pullback):
    """Send cotangents of the values where the graft says: one, or None, per value and source."""

    reruns = True

    def __init__(self, graft: Graft, tensors: Sequence[Tensor]) -> None:
        self.graft = graft
        self.tensors = tensors

    def made_of(self, tensors: Sequence[Tensor], grad: Any) -> GraftPullback:
        return GraftPullback(self.graft, tensors)

    def zeros(self) -> list[Tensor]:
        host = self.graft.host
        return [host.zeros(host.outline(value)) for value in self.tensors[: self.graft.count]]

    def __call__(self, cotangents: Sequence[Tensor | None], variables: Sequence[Any] = ()) -> Cotangents:
        return Cotangents(self.graft.pull(self.graft, self.tensors, filled(self, cotangents)), [])


def values_of(plan: Plan, tensors: Sequence[Tensor]) -> tuple[Outputs, list[Tensor]]:
    """Run the function of a call, its inputs cut off: the form of its outputs, and their tensors."""
    host, rule = plan.host, plan.rule
    args, kwargs = plan.arguments(host.stopped(tensors))
    return outputs.of_values(host.run(rule.body, args, kwargs, rule.where), rule, host, tensors)


def made_of(function: RuleFunction[..., Any], f: Callable[P, Y], *more: Any) -> DefinedFunction[P, Y]:
    """Tell what a function calls, so that a model it becomes part of knows the weights in it."""
    vars(function)["parts"] = (f, *more)
    return cast("DefinedFunction[P, Y]", function)


def without_pushforward(function: DefinedFunction[P, Y]) -> RuleFunction[P, Y]:
    """Take the decorator for a pushforward away where forward mode is derived from another function."""
    del function.pushforward
    return function
