"""Running a linear program with what its rules compute in the place of the rules.

A pullback may pass its cotangents through a rule: `pb.scale_gradient(dy, 3.0)`. What it computes is linear,
and its transpose is the forward mode. JAX would differentiate it, and ask the rule, which may have another
derivative on purpose. The rule is still asked about its other operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.core import Tracer
from jax.extend.core import Literal
from jax.interpreters import ad

from pullback.hosts.jax import called, kinds, linearity, pushed
from pullback.hosts.jax.override import bind

Moving = tuple[Any, bool]  # a value, and whether it moves with the arguments


def run(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """Run a program that is linear in its arguments."""
    given = [*((const, False) for const in consts), *((argument, True) for argument in arguments)]
    return [value for value, _ in _run(jaxpr, given)]


def _run(program: Any, given: Sequence[Moving]) -> list[Moving]:
    jaxpr = getattr(program, "jaxpr", program)
    known: dict[Any, Moving] = dict(zip(jaxpr.invars, given))
    known.update(
        (variable, (x, False)) for variable, x in zip(jaxpr.constvars, getattr(program, "consts", ()))
    )

    def read(atom: Any) -> Moving:
        return (atom.val, False) if isinstance(atom, Literal) else known[atom]

    for equation in jaxpr.eqns:
        known.update(zip(equation.outvars, _equation(equation, [read(atom) for atom in equation.invars])))
    return [read(atom) for atom in jaxpr.outvars]


def _equation(equation: Any, operands: list[Moving]) -> list[Moving]:
    moves = any(moving for _, moving in operands)
    if moves and _is_rule(equation, operands):
        return _rule(equation, operands)
    if moves and any(map(_holds_rule, kinds.subjaxprs(equation))):
        if equation.primitive.name not in ("jit", "pjit", "closed_call", "core_call"):
            raise linearity.UnprovenError(
                f"not known to be linear (a rule stands in a `{equation.primitive}`)"
            )
        return _run(linearity.called_program(equation), operands)
    return [(result, moves) for result in bind(equation, [value for value, _ in operands])]


def _is_rule(equation: Any, operands: Sequence[Moving]) -> bool:
    if equation.primitive.name == "pullback":  # linear in its tangents, which it transposes as its rule says
        return any(moving for _, moving in operands[: equation.params["derivative"].count])
    return equation.primitive.name in linearity.RULES


def _holds_rule(jaxpr: Any) -> bool:
    return any(
        equation.primitive.name in linearity.RULES or any(map(_holds_rule, kinds.subjaxprs(equation)))
        for equation in jaxpr.eqns
    )


def _rule(equation: Any, operands: list[Moving]) -> list[Moving]:
    """Call a rule so that its operands that move are differentiated as what it computes, the others by it."""
    if not any(isinstance(value, Tracer) for value, moving in operands if not moving):
        return _computed(equation, operands)
    moving = [moves for _, moves in operands]

    def computed(*values: Any) -> list[Any]:
        return [value for value, _ in _computed(equation, list(zip(values, moving)))]

    def evaluate(*values: Any) -> list[Any]:
        return bind(equation, values)

    def differentiate(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        moved = [pushed.moves(tangent) for tangent in tangents]
        parts = [
            _along(run, primals, tangents, [m and moves is which for m, moves in zip(moved, moving)])
            for run, which in ((computed, True), (evaluate, False))
        ]
        return evaluate(*primals), [ad.add_tangents(a, b) for a, b in zip(*parts)]

    values = [value for value, _ in operands]
    results = called.call(equation.primitive.name, values, evaluate, differentiate)
    return [(result, True) for result in results]


def _along(run: Any, primals: Sequence[Any], tangents: Sequence[Any], chosen: Sequence[bool]) -> list[Any]:
    """Differentiate a function of all operands along those that are chosen."""
    places = [i for i, is_chosen in enumerate(chosen) if is_chosen]

    def of_chosen(*given: Any) -> list[Any]:
        full = list(primals)
        for i, value in zip(places, given):
            full[i] = value
        return run(*full)

    if not places:
        return [ad.Zero(pushed.tangent_type(output)) for output in of_chosen()]
    return jax.jvp(of_chosen, [primals[i] for i in places], [tangents[i] for i in places])[1]


def _computed(equation: Any, operands: list[Moving]) -> list[Moving]:
    if equation.primitive.name == "pullback_owned":
        return operands[: equation.params["counts"][0]]
    program, consts = linearity.rule_program(equation)
    return _run(program, [*((const, False) for const in consts), *operands])
