"""Running the user's code, with words for the errors that JAX cannot explain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from pullback.errors import VectorConditionError

_VECTOR = ("truth value of an array", "Pred must be a scalar", "Pred type must be")


def run(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], where: str) -> Any:
    """Call a body or a `grad`."""
    try:
        return function(*args, **kwargs)
    except jax.errors.TracerBoolConversionError as error:
        raise _condition(where, "that is traced: its value is not known yet", True) from error
    except (ValueError, TypeError) as error:
        if type(error).__module__.startswith("pullback.") or not any(text in str(error) for text in _VECTOR):
            raise
        raise _condition(where, "with more than one element", False) from error


def _condition(where: str, which: str, traced: bool) -> VectorConditionError:
    error: VectorConditionError = VectorConditionError.about(
        where,
        found=f"`if`, `while` or `jax.lax.cond` was given a condition {which}",
        expected="one bool",
        why="JAX runs the function once, for all values"
        if traced
        else "a branch is taken for the whole tensor, not element by element",
        fix="y = jnp.where(condition, a, b)   # or "
        + ("jax.lax.cond(condition, …)" if traced else "reduce it: jnp.all(condition)"),
    )
    return error
