"""Loops, and what must hold, in JAX: in Python on numbers, and in the program while one is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from pullback.hosts.claims import Claim
from pullback.hosts.jax import callback
from pullback.hosts.specs import Spec

_ANSWER = Spec((), "bool", "other")


def is_known(value: Any) -> bool:
    """Tell whether a value is a number, when derivatives that are under way are put aside."""
    while hasattr(value, "primal"):
        value = value.primal
    return not isinstance(value, jax.core.Tracer)


def loop(
    going: Callable[[list[Any]], Any], step: Callable[[list[Any]], list[Any]], state: list[Any]
) -> list[Any]:
    """Repeat a step while a condition holds; a loop of the program from where values are not known."""
    while is_known(more := going(state)):
        if not more:
            return state
        state = step(state)
    return jax.lax.while_loop(going, step, state)


def repeat(count: int, step: Callable[[Any, list[Any]], list[Any]], state: list[Any]) -> list[Any]:
    """Repeat a step; a loop of the program from where values are not known."""
    for i in range(count):
        if not all(map(is_known, state)):
            return list(jax.lax.fori_loop(i, count, step, state))
        state = step(i, state)
    return state


def require(claim: Claim, holds: Any, numbers: Sequence[Any], values: list[Any]) -> list[Any]:
    """Give values of which a claim holds; a program calls Python to raise, and only where it does not."""
    if is_known(holds):
        if not holds:
            raise claim.error(list(map(_number, numbers)))
        return values

    def refuse(values: list[Any]) -> list[Any]:
        (fine,) = callback.callback(claim, [holds, *numbers], [_ANSWER])
        return [jnp.where(fine, value, jnp.full_like(value, jnp.nan)) for value in values]

    return list(jax.lax.cond(holds, list, refuse, values))


def _number(value: Any) -> Any:
    while hasattr(value, "primal"):
        value = value.primal
    return value
