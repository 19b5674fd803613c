"""Running a linear program with what its rules compute in the place of the rules.

A pullback may pass its cotangents through a rule: `pb.scale_gradient(dy, 3.0)`. What it computes is linear,
and its transpose is the forward mode. JAX would differentiate it, and ask the rule, which may have another
derivative on purpose. The rule is still asked about its other operands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from jax.core import Tracer
from jax.interpreters import ad

from pullback.hosts.jax import kinds, linearity
from pullback.hosts.jax.call_p import Program, call_p
from pullback.hosts.jax.linear_p import along, moves, zero_of
from pullback.hosts.jax.programs import bind, walk

Moving = tuple[Any, bool]  # a value, and whether it moves with the arguments


def run(jaxpr: Any, consts: Sequence[Any], *arguments: Any) -> list[Any]:
    """Run a program that is linear in its arguments."""
    given = [*map(_still, consts), *((argument, True) for argument in arguments)]
    return [value for value, _ in _run(jaxpr, given)]


def _run(program: Any, given: Sequence[Moving]) -> list[Moving]:
    jaxpr, consts = getattr(program, "jaxpr", program), getattr(program, "consts", ())
    return walk(jaxpr, [*map(_still, consts), *given], _equation, _still)


def _still(value: Any) -> Moving:
    return value, False


def _equation(equation: Any, operands: list[Moving]) -> list[Moving]:
    moves_too = any(moving for _, moving in operands)
    if moves_too and _is_rule(equation, operands):
        return _rule(equation, operands)
    if moves_too and any(map(_holds_rule, kinds.subjaxprs(equation))):
        if equation.primitive.name not in ("jit", "pjit", "closed_call", "core_call"):
            raise linearity.UnprovenError(
                f"not known to be linear (a rule stands in a `{equation.primitive}`)"
            )
        return _run(kinds.function(equation), operands)
    return [(result, moves_too) for result in bind(equation, [value for value, _ in operands])]


def _is_rule(equation: Any, operands: Sequence[Moving]) -> bool:
    name = equation.primitive.name
    if name == "pullback_linear":  # linear in its tangents, which it transposes as its rule says
        return any(moving for _, moving in operands[: equation.params["derivative"].count])
    return name in linearity.RULES


def _holds_rule(jaxpr: Any) -> bool:
    return any(
        equation.primitive.name in linearity.RULES or any(map(_holds_rule, kinds.subjaxprs(equation)))
        for equation in jaxpr.eqns
    )


def _rule(equation: Any, operands: list[Moving]) -> list[Moving]:
    """Call a rule so that its operands that move are differentiated as what it computes, the others by it."""
    if not any(isinstance(value, Tracer) for value, moving in operands if not moving):
        return _computed(equation, operands)
    values, moving = zip(*operands)
    results = call_p.bind(*values, name=equation.primitive.name, program=_InlineRule(equation, moving))
    return [(result, True) for result in results]


@dataclasses.dataclass(eq=False)
class _InlineRule(Program):
    """A rule that is linear in the operands that move."""

    equation: Any
    moving: Sequence[bool]  # per operand

    def evaluate(self, operands: Sequence[Any]) -> list[Any]:
        return bind(self.equation, operands)

    def differentiate(self, primals: list[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outputs = self.evaluate(primals)
        results = list(map(zero_of, outputs))
        for run, moving in ((self._computed, True), (self.evaluate, False)):
            places = [i for i, t in enumerate(tangents) if moves(t) and self.moving[i] is moving]
            if places:
                moved = along(run, primals, places, [tangents[i] for i in places])
                results = list(map(ad.add_tangents, results, moved))
        return outputs, results

    def _computed(self, operands: Sequence[Any]) -> list[Any]:
        return [value for value, _ in _computed(self.equation, list(zip(operands, self.moving)))]


def _computed(equation: Any, operands: list[Moving]) -> list[Moving]:
    if equation.primitive.name == "pullback_output":
        return operands[: equation.params["counts"][0]]
    program, consts = linearity.rule_program(equation)
    return _run(program, [*map(_still, consts), *operands])
