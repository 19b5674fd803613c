"""From a condition and a solver to the function that users call."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import outputs, tree
from pullback.define import function_of
from pullback.errors import OutputError
from pullback.hosts.numpy import HOST as NUMPY
from pullback.hosts.operation import Function, Tensor
from pullback.implicit.condition import Condition, Kind
from pullback.implicit.equation import Equation
from pullback.implicit.solution import Solved
from pullback.implicit.solvers import Means
from pullback.options import require_functions, require_number
from pullback.outputs import Outputs
from pullback.plan import Plan
from pullback.replace.graft import made_of, without_pushforward
from pullback.rule import EXACT, rule_of

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class Given(TypedDict, total=False):
        """The options of `root` and its like, for their overloads."""

        tolerance: float | None
        method: str
        accuracy: float | None
        iterations: int


def solving(
    kind: Kind, condition: Function, solver: Function | None, means: Means, tolerance: float | None
) -> Any:
    """Give a solver the derivatives of what its solution satisfies; without one, give what does so."""
    if solver is None:
        return functools.partial(solving, kind, condition, means=means, tolerance=tolerance)
    fix = f"pb.implicit.{kind.verb}(condition, solver)"
    require_functions(kind.verb, fix, condition=condition, solver=solver)
    require_number(kind.verb, "tolerance", tolerance, least=0, above=True, fix="tolerance=1e-6")
    means.check(kind.verb)
    rule = replace(rule_of(solver, EXACT), accuracy=means.accuracy)
    stated = Condition(condition, rule.signature, kind)

    def apply(plan: Plan, tensors: list[Tensor]) -> Any:
        host = plan.host
        form, z = _solution(plan, tensors)
        if host is NUMPY and kind.gradient:
            return form.filled(z)
        z = stated.confirmed(plan, form, z, host.stopped(tensors), tolerance)
        if host.idle(tensors):
            return form.filled(z)

        def residual(z: list[Tensor], p: list[Tensor]) -> list[Tensor]:
            return stated.residual(plan, form, z, p)

        equation = Equation(host, residual, kind.symmetric)
        return Solved(plan, equation, means, len(z), form).applied(z, tensors)

    return without_pushforward(made_of(function_of(rule, apply), solver, condition))


def _solution(plan: Plan, tensors: list[Tensor]) -> tuple[Outputs, list[Tensor]]:
    """Run the solver, its inputs cut off. NumPy arrays that it gives get the dtype of its inputs."""
    host, rule = plan.host, plan.rule
    args, kwargs = plan.arguments(host.stopped(tensors))
    leaves, structure = tree.flatten(host.run(rule.body, args, kwargs, rule.where))
    like = next((x for x in tensors if host.differentiable(x)), None)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, (np.ndarray, np.floating)) and host is not NUMPY and like is not None:
            leaves[i] = host.conform(leaf, like)
    form, values = outputs.of_values(tree.unflatten(structure, leaves), rule, host, tensors)
    others = [host.spec(x) for x in values if not host.differentiable(x)]
    if others or not values:
        raise OutputError.about(
            plan.where,
            found=f"the solution holds {', '.join(map(str, others)) or 'no tensor'}",
            expected="floating tensors, and nothing else that is a tensor",
            why="its derivatives are those of all of it",
            fix="return the solution alone",
        )
    return form, [host.arrays.stop(x) for x in values]
