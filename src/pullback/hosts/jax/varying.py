"""Types inside `shard_map`: along which axes of the mesh a value varies.

JAX wants a cotangent to vary as its input does. The inputs of a rule are made to vary alike before the rule
is called; where that copies an input to the devices, JAX sums its cotangents over them by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp


def axes_of(kind: Any) -> frozenset[str]:
    """List the axes of the mesh along which values of a type vary."""
    manual = getattr(kind, "manual_axis_type", None)  # since 0.10; `vma` before
    found = getattr(kind, "vma", frozenset()) if manual is None else manual.varying
    return frozenset(found)


def aligned(values: Sequence[Any]) -> list[Any]:
    """Make values vary along the axes along which any of them does."""
    every = frozenset().union(*(axes_of(jax.typeof(value)) for value in values))
    return [_spread(value, every) for value in values] if every else list(values)


def like(value: Any, kind: Any) -> Any:
    """Make a value vary as values of a type do."""
    axes = axes_of(kind)
    return _spread(value, axes) if axes else value


def zeros(kind: Any) -> Any:
    """Make zeros of a type."""
    return _spread(jnp.zeros(kind.shape, kind.dtype), axes_of(kind))


def _spread(value: Any, axes: frozenset[str]) -> Any:
    missing = tuple(sorted(axes - axes_of(jax.typeof(value))))
    return jax.lax.pcast(value, missing, to="varying") if missing else value
