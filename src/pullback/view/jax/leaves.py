"""What the checker sees of single values in JAX: which leaves of a call are arrays, and their precision."""

from __future__ import annotations

import contextlib
from typing import Any

import jax
import jax.numpy as jnp

from pullback.dtypes import LONG


def is_array(leaf: Any) -> bool:
    """Tell whether a leaf is an array of numbers, and no random key."""
    return isinstance(leaf, jax.Array) and not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended)


def is_wide(leaf: Any) -> bool:
    """Tell whether a leaf needs 64 bits to be what it is."""
    return isinstance(leaf, jax.Array) and leaf.dtype.name in LONG


def is_inexact(leaf: Any) -> bool:
    """Tell whether a leaf is an array that a gradient can flow to."""
    return is_array(leaf) and bool(jnp.issubdtype(leaf.dtype, jnp.inexact))


def wide() -> contextlib.AbstractContextManager[Any]:
    """Allow 64 bits in this thread, and nowhere else."""
    return jax.enable_x64(True)
