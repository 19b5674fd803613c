"""Running the user's code, with words for the errors that JAX cannot explain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from pullback.errors import VectorConditionError
from pullback.hosts import refusals

_VECTOR = ("truth value of an array", "Pred must be a scalar", "Pred type must be")


def run(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], where: str) -> Any:
    """Call a body or a `grad`."""
    try:
        return function(*args, **kwargs)
    except jax.errors.TracerBoolConversionError as error:
        raise _traced_condition(where) from error
    except (ValueError, TypeError) as error:
        if type(error).__module__.startswith("pullback.") or not any(text in str(error) for text in _VECTOR):
            raise
        raise refusals.vector_condition(where, "jax.lax.cond", "jnp.where", "jnp.all") from error


def _traced_condition(where: str) -> VectorConditionError:
    return VectorConditionError.about(
        where,
        found="`if` or `while` was given a condition that is traced: its value is not known yet",
        expected="one bool",
        why="JAX runs the function once, for all values",
        fix="y = jnp.where(condition, a, b)   # or jax.lax.cond(condition, …)",
    )
