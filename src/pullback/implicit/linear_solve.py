"""`linear_solve`: x with A·x = b, where A is what a function does to a vector."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from pullback import tree
from pullback.define import function_of
from pullback.errors import OutputError
from pullback.hosts.operation import Function, Tensor
from pullback.implicit.condition import guarded, require_like
from pullback.implicit.equation import Map, Multiply, Tensors
from pullback.implicit.solution import linear
from pullback.implicit.solvers import Means
from pullback.options import require_functions
from pullback.plan import Plan
from pullback.replace.graft import made_of, without_pushforward
from pullback.rule import EXACT, rule_of, source_of, where_of
from pullback.typed import P, RuleFunction, T, Y


def _apply(plan: Plan, tensors: list[Tensor]) -> Any:
    host = plan.host
    args, options = plan.arguments(tensors)
    matvec, symmetric = args[0], bool(options.pop("symmetric", False))
    require_functions("linear_solve", "pb.implicit.linear_solve(lambda x: …, b)", matvec=matvec)
    means = Means(**options).check("linear_solve")
    slot = next(slot for slot in plan.slots if slot.name == "b")
    count = sum(place is not None for place in slot.places)
    b, at = tensors[:count], tensors[count:]
    where = where_of(matvec)
    plan = dataclasses.replace(plan, rule=dataclasses.replace(plan.rule, source=source_of(matvec)))
    if not b or not all(map(host.differentiable, b)):
        raise OutputError.about(
            plan.where,
            found="b is no floating tensor",
            expected="floating tensors",
            fix="cast b to a floating dtype",
        )

    def run(x: Any, *parameters: Any) -> Any:
        return host.run(matvec, [x, *parameters], {}, where)

    def forth(at: Tensors) -> Multiply:
        def multiply(x: Tensors) -> Tensors:
            found, _ = tree.flatten(run(*plan.arguments([*x, *at])[0][1:]))
            return [host.conform(y, z) for y, z in zip(found, x)]

        return multiply

    def back(at: Tensors) -> Multiply:
        def multiply(u: Tensors) -> Tensors:
            zeros = [host.arrays.zeros_like(host.arrays.stop(x)) for x in u]
            return host.vjp(lambda *x: forth(at)(list(x)), zeros, u)

        return multiply

    tried = guarded(matvec, run)(*plan.arguments(host.stopped(tensors))[0][1:])
    require_like(host, tree.flatten(tried)[0], b, where, "matvec gives", "A·x in the structure of b")
    x = linear(plan, Map(forth, forth if symmetric else back, symmetric), at, b, means)
    return slot.filled([*x, *at])


def _ruled(f: Callable[P, Y]) -> RuleFunction[P, Y]:
    return without_pushforward(made_of(function_of(rule_of(f, EXACT), _apply), f))


@_ruled
def linear_solve(
    matvec: Function,
    b: T,
    *parameters: Any,
    symmetric: bool = False,
    method: str = "auto",
    accuracy: float | None = None,
    iterations: int = 1000,
) -> T:
    """Solve A·x = b for x, with gradients to b and to what A is made of.

    Nothing of the iteration is recorded. Second order and forward mode: derived; they are linear systems with
    the same A, or its transpose.

    Args:
        matvec: Gives A·x when it is called as matvec(x, *parameters): linear in x, and shaped like b.
        b: The right-hand side: a tensor or a structure of them.
        parameters: Whatever A depends on and has a gradient. A tensor that is being differentiated and is
            only captured by `matvec` is an error.
        symmetric: Whether A is: then `"cg"` is the default above 32 numbers.
        method: `"dense"`, `"cg"` for a symmetric definite A, `"gmres"` or `"bicgstab"`; by default dense for
            up to 32 numbers, then `"gmres"`.
        accuracy: How large ‖A·x − b‖ may be, relative to ‖b‖; by default as small as the dtype allows. A
            system that is not solved so far is an error.
        iterations: The most products with A.

    Example:
        >>> import numpy as np, pullback as pb
        >>> scale = np.array([2.0, 4.0])
        >>> pb.implicit.linear_solve(lambda x, d: d * x, np.ones(2), scale).tolist()
        [0.5, 0.25]

    Do not use it for a matrix that is written out: the solver of the framework has a gradient.
    """
    raise AssertionError("its rule runs `_apply`")
