"""Arrays that reach a body through a closure while JAX traces it.

JAX runs a rule apart from the program around it, where such an array is not to be had. It is found by tracing
the body, and handed to the rule as one more input: a constant of a `jit` or a `vmap` then simply works, and
one that is being differentiated is refused by name, because a rule has no cotangent for it.
"""

from __future__ import annotations

from typing import Any

import jax

from pullback.errors import CapturedTensorError
from pullback.hosts.base import Operation


def named(operation: Operation) -> bool:
    """Tell whether a name in reach of the body is a traced array."""
    return any(isinstance(value, jax.core.Tracer) for _, value in operation.captured())


def name_of(operation: Operation, tensor: Any) -> str:
    """Find the name by which a body reaches an array."""
    return next((name for name, value in operation.captured() if value is tensor), "")


def captured(operation: Operation, name: str, shape: tuple[int, ...] | None) -> CapturedTensorError:
    """Say that a captured array is being differentiated."""
    shown = f"`{name}`" if name else "a traced array" if shape is None else f"an array of shape {shape}"
    error: CapturedTensorError = CapturedTensorError.about(
        operation.where,
        found=f"the body uses {shown}, which is being differentiated and is not an argument",
        expected="every differentiated tensor among the arguments",
        why="a rule has no cotangent for a captured tensor: its gradient would silently be None",
        fix=f"pass {shown if name else 'it'} as an argument, or "
        f"jax.lax.stop_gradient({name or '…'}) before the call",
    )
    return error
