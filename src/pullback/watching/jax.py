"""Gradients in JAX, as a log hears them.

A place is a primitive, the identity; its tangent goes through a second one, whose transpose looks at the
cotangent by a third. So every transformation of JAX carries a place along: a batch is looked at as a whole,
a `scan` in each round. Compiled for the CPU, the program hands Python the array; elsewhere it asks whether
this gradient is wanted, and only then computes its numbers and tells them. Outside of a log the identity is
not even there: whether a log is open is part of what `jax.jit` remembers a program by.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from pullback.watching.framework import Framework, Opened
from pullback.watching.hearing import HEARING
from pullback.watching.record import BINS, SHIFT, numbers, stride

# ── one row ──────────────────────────────────────────────────────────────────────────────────────────────


def row(x: Any) -> Any:
    """Compute the numbers of a gradient, where it is."""
    if jnp.iscomplexobj(x):
        x = jnp.stack([x.real, x.imag])
    x = x.ravel().astype(jnp.float64 if x.dtype == jnp.float64 else jnp.float32)
    finite = jnp.isfinite(x)
    clean = jnp.where(finite, x, 0)
    sizes = jnp.abs(clean)
    largest = jnp.max(sizes, initial=0)
    scale = jnp.where(largest > 0, largest, 1)  # squares of large numbers are infinite
    count, some = jnp.sum(finite), jnp.count_nonzero(clean)
    nan = jnp.sum(jnp.isnan(x))
    real = [
        scale * jnp.sqrt(jnp.sum(jnp.square(clean / scale))),
        jnp.min(x, where=finite, initial=jnp.inf),
        jnp.max(x, where=finite, initial=-jnp.inf),
        jnp.sum(clean) / jnp.maximum(count, 1),
    ]
    counts = [x.size, nan, x.size - count - nan, count - some]
    sizes = sizes[:: stride(x.size)]
    bins = jnp.clip(jnp.floor(jnp.log10(sizes)) + SHIFT, 0, BINS - 1)
    decades = jnp.bincount(bins.astype(jnp.int32), length=BINS)
    decades = decades.at[0].add(-jnp.sum(sizes == 0))  # they stood in the first bin
    heads = jnp.stack([jnp.asarray(number, x.dtype) for number in (*real, *counts)])
    return jnp.concatenate([heads, decades.astype(x.dtype)])


_row = jax.jit(row)

# ── the primitives ───────────────────────────────────────────────────────────────────────────────────────

place_p = Primitive("watched")  # the identity
linear_p = Primitive("watched_tangent")  # the identity of tangents
look_p = Primitive("look_at_gradient")  # the identity of cotangents, which are looked at
ask_p = Primitive("gradient_wanted")

# That of a debugging callback: no transformation leaves it out, and `jax.effects_barrier` waits for it.
_EFFECT = frozenset(jax.make_jaxpr(lambda: jax.debug.callback(lambda: None))().effects)


def _same(x: Any, **_: Any) -> Any:
    return x


def _batched(primitive: Primitive, args: Any, axes: Any, *, number: int) -> Any:
    return primitive.bind(*args, number=number), axes[0]


for _primitive in (place_p, linear_p):
    _primitive.def_impl(_same)
    _primitive.def_abstract_eval(_same)
    mlir.register_lowering(_primitive, lambda context, x, **_: [x])
for _primitive in (place_p, linear_p, look_p):
    batching.primitive_batchers[_primitive] = functools.partial(_batched, _primitive)


def _pushed(primals: Any, tangents: Any, *, number: int) -> Any:
    HEARING.ran(number)
    return place_p.bind(*primals, number=number), _through(tangents[0], number)


def _pushed_again(primals: Any, tangents: Any, *, number: int) -> Any:
    return linear_p.bind(*primals, number=number), _through(tangents[0], number)


def _through(tangent: Any, number: int) -> Any:
    return tangent if type(tangent) is ad.Zero else linear_p.bind(tangent, number=number)


def _transposed(cotangent: Any, x: Any, *, number: int) -> list[Any]:
    if type(cotangent) is ad.Zero:
        return [cotangent]
    HEARING.pulled(number)
    return [look_p.bind(cotangent, number=number)]


ad.primitive_jvps[place_p] = _pushed
ad.primitive_jvps[linear_p] = _pushed_again
ad.primitive_transposes[linear_p] = _transposed
ad.primitive_jvps[look_p] = lambda primals, tangents, **params: (look_p.bind(*primals, **params), tangents[0])
ad.primitive_transposes[look_p] = lambda cotangent, x, **_: [cotangent]


@look_p.def_impl
def _look_now(x: Any, *, number: int) -> Any:
    HEARING.heard(number, functools.partial(_row, x), np.asarray)
    return x


@look_p.def_effectful_abstract_eval
def _look_abstractly(aval: Any, *, number: int) -> Any:
    return aval, _EFFECT


def _look_compiled(x: Any, *, number: int) -> Any:
    def tell(x: Any) -> None:
        io_callback(functools.partial(HEARING.told, number), None, row(x))

    jax.lax.cond(ask_p.bind(number=number), tell, lambda x: None, x)
    return x


_elsewhere = mlir.lower_fun(_look_compiled, multiple_results=False)


def _look_on_cpu(context: Any, x: Any, *, number: int) -> Any:
    """Hand Python the array itself: on the CPU that is no copy, and less than a condition in the program."""
    if getattr(context.module_context.axis_context, "num_devices", None) != 1:
        return _elsewhere(context, x, number=number)

    def look(array: Any) -> tuple[()]:
        HEARING.heard(number, functools.partial(numbers, array), _read)
        return ()

    ends = context.replace(avals_out=[])
    mlir.emit_python_callback(
        ends, look, None, [x], context.avals_in, [], has_side_effect=True, returns_token=False
    )
    return [x]


def _read(row: Any) -> Any:
    return row


mlir.register_lowering(look_p, _elsewhere)
mlir.register_lowering(look_p, _look_on_cpu, platform="cpu")


# ── the question ─────────────────────────────────────────────────────────────────────────────────────────

_BOOL = jax.core.ShapedArray((), np.dtype(bool))


@ask_p.def_abstract_eval
def _ask_abstractly(*, number: int) -> Any:
    return _BOOL


def _asked(number: int) -> np.bool_:
    return np.bool_(HEARING.asked(number))


def _ask_compiled(context: Any, *, number: int) -> Any:
    if getattr(context.module_context.axis_context, "num_devices", None) == 1:
        # `io_callback` comes to this, at three times its cost
        return mlir.emit_python_callback(
            context,
            lambda: (_asked(number),),
            None,
            [],
            [],
            context.avals_out,
            has_side_effect=True,
            returns_token=False,
        )[0]
    asking = functools.partial(io_callback, functools.partial(_asked, number), jax.ShapeDtypeStruct((), bool))
    return mlir.lower_fun(asking, multiple_results=False)(context)


mlir.register_lowering(ask_p, _ask_compiled)


# ── who listens ──────────────────────────────────────────────────────────────────────────────────────────

_listening = jax.make_user_context(False)


class Jax(Framework):
    """Look by primitives."""

    def seen(self, x: Any, number: int) -> Any:
        if not _listening.value or not jnp.issubdtype(x.dtype, jnp.inexact):
            return x
        return place_p.bind(x, number=number)

    def look(self, gradient: Any, number: int) -> Any:
        if not _listening.value or not jnp.issubdtype(gradient.dtype, jnp.inexact):
            return gradient
        HEARING.pulled(number)
        return look_p.bind(gradient, number=number)

    def opened(self) -> None:
        _listening.set_global(HEARING.open)

    def drain(self) -> None:
        jax.effects_barrier()

    def opened_as(self, value: Any) -> Opened | None:
        parts, structure = jax.tree_util.tree_flatten_with_path(value)
        if jax.tree_util.treedef_is_leaf(structure):
            return None
        named = [(jax.tree_util.keystr(path), leaf) for path, leaf in parts]
        return named, functools.partial(jax.tree_util.tree_unflatten, structure)


FRAMEWORK = Jax()
