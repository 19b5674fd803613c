"""What a solution is said to satisfy: how the condition is called, and that it holds.

The condition is F(solution, parameters). Its parameters are arguments of the solver: those of the same names,
or by position all of them, or all but the first, which is then where the solver begins. Whatever the
condition does not take cannot move the solution, and has no gradient.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback import tree
from pullback.define import applied
from pullback.errors import DefinitionError, OutputError, SolutionError
from pullback.hosts.base import Host
from pullback.hosts.claims import Claim
from pullback.hosts.operation import Function, Tensor
from pullback.hosts.specs import same_shape, show_shape
from pullback.implicit.vectors import Space
from pullback.outputs import Outputs
from pullback.plan import Plan
from pullback.plan import plan as plan_of
from pullback.rule import Rule, name_of, signature_of, source_of, where_of
from pullback.unconverted import unconverted

Call = tuple[list[Any], dict[str, Any]]
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Kind:
    """What is said of a solution: a verb, and the function F that is zero there.

    `zero` takes a host, the user's function of the solution alone, a solution, and where it is written.
    """

    verb: str
    zero: Callable[[Host, Function, Any, str], Any]
    symmetric: bool = False  # whether ∂F/∂z is
    gradient: bool = False  # whether F is a gradient: NumPy has none


class Condition:
    """A condition as it was stated, and what is asked of a solution."""

    def __init__(self, function: Function, solver: inspect.Signature, kind: Kind) -> None:
        self.function = function
        self.solver = solver
        self.kind = kind
        self.where = where_of(function)
        self._handing = _handing(function, solver, self.where)
        self._guarded = guarded(function, self._run)

    def _run(self, host: Host, z: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return host.run(self.function, [z, *args], kwargs, self.where)

    def handed(self, plan: Plan, tensors: Sequence[Tensor]) -> Call:
        """Give the arguments of the condition behind the solution."""
        args, kwargs = plan.arguments(tensors)
        bound = self.solver.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._handing(bound)

    def residual(self, plan: Plan, form: Outputs, z: Sequence[Tensor], p: Sequence[Tensor]) -> list[Tensor]:
        """Give F as a flat list of tensors, one for each of the solution's, in its dtype."""
        host, (args, kwargs) = plan.host, self.handed(plan, p)
        found = self._zero(host, lambda z: self._run(host, z, args, kwargs), form.filled(z))
        return [host.arrays.cast(x, like) for x, like in zip(found, z)]

    def _zero(self, host: Host, function: Function, z: Any) -> list[Tensor]:
        leaves, _ = tree.flatten(self.kind.zero(host, function, z, self.where))
        return [host.tensor(x, where=self.where, argument="what the condition gives") for x in leaves]

    def confirmed(
        self, plan: Plan, form: Outputs, z: list[Tensor], tensors: Sequence[Tensor], tolerance: float | None
    ) -> list[Tensor]:
        """Give a solution that satisfies the condition; an error, now or in the program, if it does not."""
        host, (args, kwargs), whole = plan.host, self.handed(plan, tensors), form.filled(z)
        given = self._guarded(host, whole, args, kwargs)
        again = functools.partial(self._run, host, args=args, kwargs=kwargs)
        leaves = self._zero(host, again if self.kind.gradient else lambda _: given, whole)
        require_like(host, leaves, z, self.where, "it gives", "a number for each of the solution")
        if tolerance == float("inf"):
            return z
        moving = [x for x in tensors if host.differentiable(x)]
        space = Space(host, z)
        xp = space.xp

        def largest(values: Sequence[Tensor]) -> Tensor:
            sizes = [xp.max(xp.astype(xp.abs(x), space.wide)) for x in values if 0 not in x.shape]
            return functools.reduce(xp.maximum, sizes, xp.zeros((), dtype=space.wide))

        if tolerance is None:
            tolerance = space.roundoff ** (1 / 3)
        scale = largest([*z, *moving])
        allowed = tolerance * xp.where(scale > 0, scale, xp.ones_like(scale))
        residual = largest(leaves)

        def error(residual: str, allowed: str) -> Exception:
            return SolutionError.about(
                plan.where,
                found=f"its solution does not satisfy `{name_of(self.function)}`: the residual is {residual}",
                expected=f"at most {allowed}",
                why="the derivative is that of a solution: where the condition does not hold, it is another "
                "function's",
                fix="let the solver converge, correct the condition, or give tolerance=",
            )

        claim = Claim(plan.rule.name, plan.where, error)
        return host.require(claim, residual <= allowed, [residual, allowed], z)


def guarded(function: Function, run: Function) -> Function:
    """Run a function of the user's on tensors that are cut off as the body of a rule, without a gradient.

    So a tensor that is being differentiated, and that the function only captures, is refused as in any rule.
    It is an operation and no function of a user's: whoever listens to rules does not hear of it.
    """

    @functools.wraps(function, updated=())
    def body(*args: Any) -> Any:
        def grad(*_: Any) -> Any:
            raise AssertionError("it is given what nobody differentiates")

        return run(*args), grad

    # AutoGraph converts the user's function, where `run` calls it, and not what is around it.
    unconverted(body)
    signature = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])
    rule = Rule(body, name_of(function), signature, source=source_of(function))
    return lambda *args: applied(*plan_of(rule, args, {}))


def require_like(
    host: Host, found: Sequence[Any], wanted: Sequence[Tensor], where: str, gives: str, expected: str
) -> None:
    """Refuse what has not one number for each of the solution's."""
    have, want = [host.spec(x) for x in found], [host.spec(x) for x in wanted]
    known = [(a.shape, b.shape) for a, b in zip(have, want) if a.shape is not None and b.shape is not None]
    if len(have) == len(want) and all(same_shape(a, b) for a, b in known):
        return
    shown = [", ".join(show_shape(s.shape or ()) for s in side) or "nothing" for side in (have, want)]
    raise OutputError.about(
        where,
        found=f"{gives} {shown[0]}",
        expected=f"{expected}: {shown[1]}",
        why="there must be as many equations as unknowns",
        fix=f"return {shown[1]}",
    )


def _handing(function: Function, solver: inspect.Signature, where: str) -> Callable[..., Call]:
    """Find which arguments of the solver the condition takes."""
    taken = list(signature_of(function).parameters.values())[1:]
    ours = solver.parameters
    needed = [p for p in taken if p.default is p.empty and p.kind in _NAMED]
    named = [p for p in taken if p.kind in _NAMED and p.name in ours and ours[p.name].kind in _NAMED]
    starred = any(p.kind is p.VAR_POSITIONAL for p in taken)
    if named and not starred and all(p.name in ours for p in needed):
        return lambda bound: ([], {p.name: bound.arguments[p.name] for p in named})
    positions = [p for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least, most = sum(p.default is p.empty for p in positions), len(positions)

    def by_position(bound: inspect.BoundArguments) -> Call:
        given = list(bound.args)
        fits = [starred or least <= len(given) - k <= most for k in (0, 1)]
        if starred:
            fits[0] = False  # solve(init, *theta) is the convention
        if sum(fits) != 1:
            raise DefinitionError.about(
                where,
                found=f"it takes {most} arguments behind the solution, the solver {len(given)}",
                expected="the arguments of the solver, or all but the first",
                why="what the condition is handed decides what gets a gradient",
                fix="give the arguments of both the same names",
            )
        return given[fits[1] :], {}

    return by_position
