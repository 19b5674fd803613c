"""How the checker looks inside a function of JAX: its jaxpr, gone through equation by equation."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

from pullback.hosts.jax.programs import bind, walk
from pullback.view.framework import Run
from pullback.view.jax.program import quick
from pullback.view.switches import Gaps, gaps_of

TRACES = True  # the pullback is part of what is traced
ENDLESS = 1000  # steps of a loop that says no number
_NAMES = {"rem": "remainder", "integer_pow": "pow", "clamp": "clamp", "reduce_prod": "prod"}


def look(run: Run) -> Callable[[Sequence[Any]], Gaps]:
    """Give the gaps of a function as a function of its sources."""
    programs: dict[tuple[Any, ...], Callable[..., Any]] = {}
    names: dict[tuple[Any, ...], list[str]] = {}

    def gaps(sources: Sequence[Any]) -> Gaps:
        key = tuple((jnp.shape(s), jnp.result_type(s)) for s in sources)
        if key not in programs:
            closed = jax.make_jaxpr(run)(list(sources))

            def program(given: list[Any]) -> list[Any]:
                found: Gaps = []
                walk(closed.jaxpr, [*closed.consts, *given], functools.partial(_equation, found))
                names[key] = [name for name, _ in found]
                return [gap for _, gap in found]

            programs[key] = quick(program)
        values = programs[key](list(sources))
        return list(zip(names[key], values))

    return gaps


def _equation(found: Gaps, eqn: Any, operands: list[Any]) -> list[Any]:
    """Run an equation, and note the gaps of its operations."""
    spelled = eqn.primitive.name
    inner = next((p for p in eqn.params.values() if isinstance(p, ClosedJaxpr)), None)
    if inner is not None and len(inner.jaxpr.invars) == len(operands) and "scan" not in spelled:
        return walk(inner.jaxpr, [*inner.consts, *operands], functools.partial(_equation, found))
    name = _NAMES.get(spelled, spelled)
    if operands and jnp.issubdtype(jnp.result_type(operands[0]), jnp.floating):
        ordered = [operands[1], operands[0], operands[2]] if name == "clamp" else operands
        found += [(spelled, gap) for gap in gaps_of(name, ordered, jnp.floor)]
    return bind(eqn, operands)


def repeats(run: Run, sources: Sequence[Any]) -> int:
    """Count how often the most frequent operation runs, on one shape."""
    counted: Counter[Any] = Counter()
    _count(jax.make_jaxpr(run)(list(sources)).jaxpr, 1, counted)
    return max(counted.values(), default=0)


def _count(jaxpr: Jaxpr, times: int, counted: Counter[Any]) -> None:
    """Count the equations of a jaxpr, and those inside of them."""
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        steps = {"while": ENDLESS, "scan": eqn.params.get("length", 1)}.get(name, 1)
        inner = [p for p in eqn.params.values() if isinstance(p, ClosedJaxpr)]
        for closed in inner:
            _count(closed.jaxpr, steps * times, counted)
        if not inner:
            counted[name, str(eqn.outvars[0].aval)] += times
