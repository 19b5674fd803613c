"""An explicit second order: the pullback of a call as an operation of its own.

(tensors, cotangents) ↦ Jᵀ·cotangents. Its pullback takes ddx to `gradgrad(ddx)` for the tensors, as the user
says, and to J·ddx for the cotangents, which is derived: the pullback is linear in them. Higher orders follow,
because a host runs this operation again when somebody records its pullback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pullback import contract, outputs
from pullback.errors import SecondOrderError
from pullback.hosts.operation import Cotangents, Derived, Operation, Pullback, Tensor, filled
from pullback.plan import Plan


class Second(Derived):
    """Run the body and `grad` as one operation."""

    def __init__(self, operation: Operation, count: int, variables: Sequence[Any]) -> None:
        if variables:
            _refuse_variables(operation.plan, variables)
        super().__init__(operation)
        self.operation = operation
        self.count = count  # of the cotangents, at the end of the tensors

    def forward(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Pullback]:
        cut = len(tensors) - self.count
        inputs, cotangents = list(tensors[:cut]), list(tensors[cut:])
        _, pull = self.operation.forward(inputs)
        return self.after(pull, pull(cotangents), inputs, cotangents)

    def after(
        self, first: Pullback, got: Cotangents, inputs: Sequence[Tensor], cotangents: Sequence[Tensor]
    ) -> tuple[list[Tensor], Pullback]:
        """Give the outputs and the pullback of this operation from a run of `grad` that is there."""
        given = [i for i, cotangent in enumerate(got.inputs) if cotangent is not None]
        outputs = [got.inputs[i] for i in given]
        return outputs, SecondPullback(self.plan, first, got, given, inputs, cotangents)


@dataclass(eq=False)
class SecondPullback(Pullback):
    """Run the user's `gradgrad`, and derive how the result depends on the cotangents."""

    plan: Plan
    first: Pullback
    got: Cotangents
    given: Sequence[int]
    inputs: Sequence[Tensor]
    cotangents: Sequence[Tensor]

    def zeros(self) -> list[Tensor]:
        host = self.plan.host
        return [host.zeros(host.outline(self.inputs[i])) for i in self.given]

    def require(self, variables: Sequence[Any]) -> None:
        _refuse_variables(self.plan, variables)

    def __call__(self, cotangents: Sequence[Tensor | None], variables: Sequence[Any] = ()) -> Cotangents:
        plan, host, gradgrad = self.plan, self.plan.host, self.got.second
        assert gradgrad is not None
        given = filled(self, cotangents)
        outputs.check_gradgrad(gradgrad, len(given), plan.rule)
        returned = host.run(gradgrad, given, {}, plan.where)
        settled = contract.settle(returned, plan, self.inputs, (), gradgrad)
        return Cotangents(settled.inputs + host.vjp(self._first_order, self.cotangents, given), [])

    def _first_order(self, *cotangents: Tensor) -> list[Tensor]:
        got = self.first(cotangents)
        return [got.inputs[i] for i in self.given]


def _refuse_variables(plan: Plan, variables: Sequence[Any]) -> NoReturn:
    """Say that an explicit second order has no place for captured variables."""
    names = ", ".join(contract.variable_name(variable, plan) for variable in variables)
    raise SecondOrderError.about(
        plan.where,
        found="`grad` returned `gradgrad`, and the body uses captured variables",
        expected="no captured variable beside an explicit second order",
        why="`gradgrad` has no place for the second derivatives of a variable",
        fix=f"pass the variable as an argument: {names}",
    )
