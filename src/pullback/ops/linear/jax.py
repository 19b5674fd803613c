"""JAX: a loop of the program, results written in place, 16-bit products with sums in float32.

On a GPU the gradient of a matrix in bfloat16 is made with the loss, by a kernel of Pallas, and summed up in
bfloat16. A program in which nobody asks for it leaves it out.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from pullback.define import custom_gradient
from pullback.ops.linear import plain
from pullback.ops.linear.accumulated import loss_and_slopes
from pullback.ops.linear.kernels import Carry, Folded, Step, kernels_of
from pullback.ops.linear.plain import HELD as HELD
from pullback.ops.linear.plain import after as after
from pullback.ops.linear.plain import exponentials as exponentials
from pullback.ops.linear.plain import pieces as pieces
from pullback.ops.linear.plain import room as room
from pullback.ops.linear.plain import scaled as scaled
from pullback.ops.linear.plain import slopes as slopes
from pullback.ops.linear.plain import softmax as softmax


def adds_in_place(w: Any) -> bool:
    return _is_fast(w)


def _is_fast(a: Any) -> bool:
    """Tell whether a GPU is fast at a dtype that no logit is too large for."""
    return a.dtype == jnp.bfloat16 and _has_kernels()


def _has_kernels() -> bool:
    """Tell whether Pallas compiles for the device that there is: one GPU of NVIDIA, from Ampere on.

    A program over several devices is divided by XLA, which cannot look into a kernel.
    """
    device, *more = jax.devices()
    major, _, _ = str(getattr(device, "compute_capability", "")).partition(".")
    return not more and major.isdigit() and int(major) >= 8 and _kernels() is not None


@functools.cache
def _kernels() -> Any:
    try:
        from pullback.ops.linear import pallas
    except ImportError:  # another JAX than we know
        return None
    return pallas


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


def _dot(a: Any, b: Any, axes: tuple[int, int], kind: Any = None) -> Any:
    """Multiply along two axes as they lie: XLA would copy a transposed matrix in front of a loop."""
    kind = jnp.promote_types(b.dtype, jnp.float32) if kind is None else kind
    contracted = (((axes[0],), (axes[1],)), ((), ()))
    return lax.dot_general(a.astype(b.dtype), b, contracted, preferred_element_type=kind)


def product(a: Any, b: Any) -> Any:
    return _dot(a, b, (1, 1))


def raw_product(a: Any, b: Any, bias: Any | None, room: Any | None) -> Any:
    if not _is_fast(b):
        return plain.raw_product(a, b, bias, room)
    z = _dot(a, b, (1, 1), b.dtype)
    return z if bias is None else z + bias.astype(z.dtype)


def into(g: Any, w: Any) -> Any:
    return _dot(g, w, (1, 0))


def across(g: Any, x: Any) -> Any:
    return _dot(g, x, (0, 0))


def sums_of(w: Any) -> Any:
    return jnp.zeros_like(w if _is_fast(w) else wide(w))


def added(dw: Any, g: Any, x: Any, start: Any) -> Any:
    return dw + (_dot(g, x.astype(g.dtype), (0, 0), dw.dtype) if _is_fast(dw) else across(g, x))


def weighed(x: Any, c: Any) -> Any:
    return (wide(x) * c[:, None]).astype(x.dtype if _is_fast(x) else c.dtype)


def times(dy: Any, parts: Sequence[Any]) -> list[Any]:
    return [dy.astype(part.dtype) * part if _is_fast(part) else dy * wide(part) for part in parts]


def fused(z: Any, labels: Any, **options: Any) -> tuple[Any, list[Any], None] | None:
    if not _is_fast(z) or not len(z):  # a kernel has one program a row: there is none without rows
        return None
    losses, g = in_one(z, labels, **options)
    return losses, [g], None


@custom_gradient
def in_one(z: Any, labels: Any, **options: Any) -> Any:
    """Run the kernel, where the program runs on such a GPU; it is differentiated as plain functions are."""

    def plainly(z: Any) -> tuple[Any, Any]:
        losses, (g,), scale, _ = loss_and_slopes(kernels_of(z), [z], labels, [0], **options)
        return losses, (g if scale is None else g / scale[:, None]).astype(z.dtype)

    def grad(*slopes: Any) -> Any:
        return {"z": jax.vjp(plainly, z)[1](slopes)[0]}

    kernel = functools.partial(_kernels().loss_and_slopes, labels=labels, **options)
    return lax.platform_dependent(z, cuda=kernel, default=plainly), grad


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
