"""A plan carried out: the operation that a host is handed, and the pullback that it gets from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from pullback import contract, outputs, takes, tangent
from pullback.hosts.operation import Cotangents, Operation, Pullback, Tensor, filled
from pullback.plan import Plan
from pullback.rule import Rule
from pullback.second import Second

_NONE: dict[str, Any] = {}


def _of(path: str) -> Any:
    """Give a property that is read without a call of Python's: hosts ask for these in every call."""
    return property(attrgetter(path))


class Application:
    """One call of a rule. This is an `Operation` of `hosts.base`; it holds no tensor."""

    __slots__ = ("outputs", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.outputs = outputs.LONE

    host, name, where = _of("plan.host"), _of("plan.rule.name"), _of("plan.rule.where")
    order, intent, rule = _of("plan.rule.order"), _of("plan.rule.intent"), _of("plan.rule")
    identity, memo, captured = _of("plan.rule.identity"), _of("plan.rule.memo"), _of("plan.rule.captured")
    has_pushforward = _of("plan.rule.has_pushforward")

    def forward(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Pullback]:
        """Run the body; keep of its outputs only what the pullback needs."""
        plan = self.plan
        args, kwargs = (tensors, _NONE) if plan.flat else plan.arguments(tensors)
        return self.ran(tensors, plan.host.run(plan.rule.body, args, kwargs, plan.rule.where))

    def ran(self, tensors: Sequence[Tensor], result: Any) -> tuple[list[Tensor], Pullback]:
        """Take what the body returned apart into its outputs and the pullback."""
        plan = self.plan
        self.outputs, values, grad, outlines = outputs.read(result, plan.rule, plan.host, tensors)
        return values, RulePullback(plan, self.outputs, tensors, grad, outlines)

    def takes(self, grad: Callable[..., Any], count: int) -> bool:
        """Tell whether a `grad` can take so many cotangents, one for each output."""
        takes = outputs.accepts(grad)
        return takes.least <= count <= takes.most

    def pullback(self, tensors: Sequence[Tensor], grad: Callable[..., Any], count: int) -> RulePullback:
        """Give the pullback of a run that returned so many tensors and this `grad`."""
        return RulePullback(self.plan, outputs.each(count), tensors, grad, ())

    def pushforward(
        self, tensors: Sequence[Tensor], tangents: Sequence[Tensor], values: Sequence[Tensor] = ()
    ) -> list[Tensor] | None:
        """Run the user's pushforward: one tangent per tensor argument, then the arguments.

        The outputs of the run are for one that takes them.
        """
        plan = self.plan
        function = plan.rule.pushforward
        if function is None:
            return None
        args, kwargs = plan.arguments(tensors)
        given = [*(slot.filled(tangents) for slot in plan.moving), *args]
        tangent.require_takes(function, given, kwargs, plan.rule)
        if values:
            kwargs = {**kwargs, "output": self.outputs.filled(values)}
        returned = plan.host.run(function, given, kwargs, plan.where)
        return tangent.settle(returned, self.outputs, plan.rule, function, plan.host)

    @property
    def pushes_output(self) -> bool:
        """Tell whether the pushforward takes the outputs of the run too."""
        return getattr(self.plan.rule.pushforward, "takes_output", False)

    def key(self, extra: Any) -> Any:
        return (extra, *self.plan.key)

    def second(self, count: int, variables: Sequence[Any] = ()) -> Operation:
        return Second(self, count, variables)


# The recorder's way in: each is told of every gradient that is asked for. Empty in any other program.
listeners: list[Callable[[Rule, Sequence[Tensor | None]], None]] = []


class RulePullback(Pullback):
    """Run the user's `grad` on cotangents of the outputs."""

    __slots__ = ("grad", "outlines", "outputs", "plan", "tensors")

    def __init__(
        self,
        plan: Plan,
        outputs: outputs.Outputs,
        tensors: Sequence[Tensor],
        grad: Callable[..., Any] | None,
        outlines: Sequence[Any],
    ) -> None:
        self.plan = plan
        self.outputs = outputs
        self.tensors = tensors
        self.grad = grad
        self.outlines = outlines

    def made_of(self, tensors: Sequence[Tensor], grad: Callable[..., Any] | None) -> RulePullback:
        return RulePullback(self.plan, self.outputs, tensors, grad, self.outlines)

    def zeros(self) -> list[Tensor]:
        return [self.plan.host.zeros(outline) for outline in self.outlines]

    def require(self, variables: Sequence[Any]) -> None:
        assert self.grad is not None
        contract.require_variables(self.grad, variables, self.plan)

    def __call__(self, cotangents: Sequence[Tensor | None], variables: Sequence[Any] = ()) -> Cotangents:
        plan, host, grad = self.plan, self.plan.host, self.grad
        assert grad is not None
        given = list(cotangents)
        for listen in listeners:
            listen(plan.rule, given)
        for i, cotangent in enumerate(given):
            if cotangent is None:
                given[i] = host.zeros(self.outlines[i])
        if self.outputs.tree is not None:
            given = self.outputs.arranged(given)
        kwargs = {"variables": list(variables)} if variables else _NONE
        try:
            returned = host.run(grad, given, kwargs, plan.rule.where)
        except TypeError as error:
            found = takes.mismatch(grad, given, kwargs, error)
            if not found:
                raise
            raise outputs.grad_signature(found, len(given), plan.rule) from error
        if plan.flat and not variables:  # the common case: a cotangent per argument, each as it should be
            laid = list(returned) if type(returned) is tuple else [returned]
            if len(laid) == len(self.tensors) and host.fit(laid, self.tensors):
                return Cotangents(laid, [])
        return self.settled(returned, variables)

    def opened(
        self, cotangents: Sequence[Tensor | None]
    ) -> tuple[Callable[..., Any], list[Any], Callable[[Any], list[Any]]]:
        """Give `grad`, what it is handed, and how what it returns lies along the inputs: for the checker."""
        plan, grad = self.plan, self.grad
        assert grad is not None
        given = self.outputs.arranged(filled(self, cotangents))
        return grad, given, lambda returned: contract.laid(returned, plan, self.tensors, grad)[0]

    def settled(self, returned: Any, variables: Sequence[Any] = ()) -> Cotangents:
        """Lay what `grad` returned along the inputs."""
        assert self.grad is not None
        return contract.settle(returned, self.plan, self.tensors, variables, self.grad)
