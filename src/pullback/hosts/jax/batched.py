"""Batches of a `vmap`: the axis at the front, and a function for each example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.interpreters import batching


def register(primitive: Any, batch: Callable[..., list[Any]]) -> None:
    """Tell JAX what a primitive does to a batch: `batch` gives results that have it at the front."""

    def rule(axis: Any, operands: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        mapped = any(dim is not None for dim in dims)
        results = batch(axis, operands, dims, **params) if mapped else primitive.bind(*operands, **params)
        return results, [0 if mapped else None] * len(results)

    batching.fancy_primitive_batchers[primitive] = rule


def front(axis: Any, x: Any, dim: int | None) -> Any:
    """Bring the axis of the batch to the front; repeat what has none."""
    return batching.bdim_at_front(x, dim, axis.size, axis.explicit_mesh_axis)


def fronts(axis: Any, operands: Sequence[Any], dims: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Bring the axis to the front where there is one; tell where that is, as `in_axes` do."""
    moved = [x if dim is None else front(axis, x, dim) for x, dim in zip(operands, dims)]
    return moved, [None if dim is None else 0 for dim in dims]


def over_axis(axis: Any, function: Callable[..., Any], axes: Sequence[Any]) -> Callable[..., Any]:
    """Map a function over the axis of a batch, under the name it has."""
    named = {} if type(axis.name) is object else {"axis_name": axis.name}  # JAX marks an unnamed axis so
    return jax.vmap(function, tuple(axes), axis_size=axis.size, spmd_axis_name=axis.spmd_name, **named)
