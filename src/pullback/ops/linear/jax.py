"""JAX: a loop of the program, results written in place, 16-bit products with sums in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from pullback.ops.linear.kernels import Carry, Folded, Step
from pullback.ops.linear.plain import HELD as HELD
from pullback.ops.linear.plain import added as added
from pullback.ops.linear.plain import after as after
from pullback.ops.linear.plain import exponentials as exponentials
from pullback.ops.linear.plain import fused as fused
from pullback.ops.linear.plain import pieces as pieces
from pullback.ops.linear.plain import raw_product as raw_product
from pullback.ops.linear.plain import room as room
from pullback.ops.linear.plain import scaled as scaled
from pullback.ops.linear.plain import slopes as slopes
from pullback.ops.linear.plain import softmax as softmax
from pullback.ops.linear.plain import times as times
from pullback.ops.linear.plain import weighed as weighed


def adds_in_place(w: Any) -> bool:
    return False


def wide(a: Any) -> Any:
    return a.astype(jnp.promote_types(a.dtype, jnp.float32))


def index(labels: Any) -> Any:
    return labels.astype(jnp.promote_types(labels.dtype, jnp.int32))


def numbered(a: Any) -> Any:
    return jnp.arange(len(a))


def zeros(x: Any) -> Any:
    return jnp.zeros_like(x, jnp.promote_types(x.dtype, jnp.float32), x.shape[:1])


def fold(count: Any, size: int, step: Step, carry: Carry, likes: Sequence[Any] = ()) -> Folded:
    full, rest = divmod(count, size)
    made = tuple(map(jnp.zeros_like, likes))

    def turn(i: Any, state: Any) -> Any:
        carry, made = state
        carry, blocks = step(i * size, size, carry)
        return carry, _written(made, blocks, i * size)

    if full:
        carry, made = lax.fori_loop(0, full, turn, (carry, made))
    if rest or not full:
        carry, blocks = step(full * size, rest, carry)
        made = _written(made, blocks, full * size)
    return carry, made


def _written(made: Any, blocks: Any, start: Any) -> Any:
    return tuple(
        lax.dynamic_update_slice_in_dim(a, block.astype(a.dtype), start, 0) for a, block in zip(made, blocks)
    )


def rows(a: Any, start: Any, size: int) -> Any:
    return lax.dynamic_slice_in_dim(a, start, size, 0)


def length(a: Any) -> int:
    return int(a.shape[0])


def _dot(a: Any, b: Any, axes: tuple[int, int]) -> Any:
    kind = jnp.promote_types(b.dtype, jnp.float32)
    contracted = (((axes[0],), (axes[1],)), ((), ()))
    return lax.dot_general(a.astype(b.dtype), b, contracted, preferred_element_type=kind)


def product(a: Any, b: Any) -> Any:
    return _dot(a, b, (1, 1))


def into(g: Any, w: Any) -> Any:
    return _dot(g, w, (1, 0))


def across(g: Any, x: Any) -> Any:
    return _dot(g, x, (0, 0))


def sums_of(w: Any) -> Any:
    return jnp.zeros_like(wide(w))


def picked(z: Any, labels: Any, start: Any) -> Any:
    places = labels - start
    index = jnp.clip(places, 0, z.shape[1] - 1)
    # a sum over a comparison would be fused as well, but its constants are hoisted out of the loop, and held
    return jnp.where(places == index, jnp.take_along_axis(z, index[:, None], 1)[:, 0], 0)


def add_picked(z: Any, labels: Any, start: Any, values: Any) -> Any:
    here = lax.broadcasted_iota(labels.dtype, z.shape, 1) == (labels - start)[:, None]
    return z + jnp.where(here, values[:, None], 0)


def assert_none(bad: Any, text: str) -> None:
    """A compiled program of JAX raises nothing."""


def is_near(x: Any) -> bool:
    return jax.default_backend() == "cpu"
