"""Types as JAX has them: inside `shard_map`, along which axes of the mesh a value varies.

JAX wants a cotangent to vary as its input does. The inputs of a rule are made to vary alike before the rule
is called; where that copies an input to the devices, JAX sums its cotangents over them by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core.primitives import convert_element_type_p


def axes_of(kind: Any) -> frozenset[str]:
    """List the axes of the mesh along which values of a type vary."""
    manual = getattr(kind, "manual_axis_type", None)  # since 0.10; `vma` before
    found = getattr(kind, "vma", frozenset()) if manual is None else manual.varying
    return frozenset(found)


def axes_of_any(values: Sequence[Any]) -> frozenset[str]:
    """List the axes of the mesh along which any of these values varies."""
    return frozenset().union(*map(axes_of, map(jax.typeof, values)))


def aligned(values: Sequence[Any]) -> list[Any]:
    """Make values vary along the axes along which any of them does."""
    every = axes_of_any(values)
    return [spread(value, every) for value in values] if every else list(values)


def like(value: Any, kind: Any) -> Any:
    """Make a value vary as values of a type do."""
    axes = axes_of(kind)
    return spread(value, axes) if axes else value


def typed(value: Any, kind: Any) -> Any:
    """Give a value the type that JAX has for it: its axes of a mesh, and weak as a Python number is."""
    value = like(value, kind)
    if value.weak_type == kind.weak_type:
        return value
    return convert_element_type_p.bind(value, new_dtype=value.dtype, weak_type=kind.weak_type, sharding=None)


def zeros(kind: Any) -> Any:
    """Make zeros of a type."""
    return spread(jnp.zeros(kind.shape, kind.dtype), axes_of(kind))


def spread(value: Any, axes: frozenset[str]) -> Any:
    """Make a value vary along axes, if it does not yet."""
    missing = tuple(sorted(axes - axes_of(jax.typeof(value))))
    return jax.lax.pcast(value, missing, to="varying") if missing else value
