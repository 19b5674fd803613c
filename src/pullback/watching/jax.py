"""Gradients in JAX, as a log hears them.

A watchpoint is a primitive, the identity; its tangent goes through a second one, whose transpose looks at
the cotangent by a third. So every transformation of JAX carries it along: a batch is looked at as a whole,
a `scan` in each round. A compiled program asks which gradients are wanted, once for all watchpoints that run
together, and tells of those alone: the CPU hands Python the array, elsewhere its numbers are computed first.
Outside of a log the identity is not even there: whether a log is open is part of what `jax.jit` remembers a
program by.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.extend.core import Primitive
from jax.extend.mlir import ir
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

watch_p = Primitive("watched")  # the identity
linear_p = Primitive("watched_tangent")  # the identity of tangents
look_p = Primitive("look_at_gradient")  # the identity of cotangents, which are looked at
tell_p = Primitive("tell_of_gradient")
tell_p.multiple_results = True

# That of a debugging callback: no transformation leaves it out, and `jax.effects_barrier` waits for it.
_EFFECT = frozenset(jax.make_jaxpr(lambda: jax.debug.callback(lambda: None))().effects)


def _same(x: Any, **_: Any) -> Any:
    return x


def _batched(primitive: Primitive, args: Any, axes: Any, *, number: int) -> Any:
    return primitive.bind(*args, number=number), axes[0]


for _primitive in (watch_p, linear_p):
    _primitive.def_impl(_same)
    _primitive.def_abstract_eval(_same)
    mlir.register_lowering(_primitive, lambda context, x, **_: [x])
for _primitive in (watch_p, linear_p, look_p):
    batching.primitive_batchers[_primitive] = functools.partial(_batched, _primitive)


def _pushed(primals: Any, tangents: Any, *, number: int) -> Any:
    HEARING.ran(number)
    return watch_p.bind(*primals, number=number), _through(tangents[0], number)


def _pushed_again(primals: Any, tangents: Any, *, number: int) -> Any:
    return linear_p.bind(*primals, number=number), _through(tangents[0], number)


def _through(tangent: Any, number: int) -> Any:
    return tangent if type(tangent) is ad.Zero else linear_p.bind(tangent, number=number)


def _transposed(cotangent: Any, x: Any, *, number: int) -> list[Any]:
    if type(cotangent) is ad.Zero:
        return [cotangent]
    HEARING.pulled(number)
    return [look_p.bind(cotangent, number=number)]


ad.primitive_jvps[watch_p] = _pushed
ad.primitive_jvps[linear_p] = _pushed_again
ad.primitive_transposes[linear_p] = _transposed
ad.primitive_jvps[look_p] = lambda primals, tangents, **params: (look_p.bind(*primals, **params), tangents[0])
ad.primitive_transposes[look_p] = lambda cotangent, x, **_: [cotangent]


@look_p.def_impl
def _look_now(x: Any, *, number: int) -> Any:
    x = jnp.asarray(x)
    sharded = x.is_fully_addressable and len(x.sharding.device_set) > 1  # a row of its parts may be refused
    HEARING.heard(number, lambda: numbers(np.asarray(x)) if sharded else _row(x), np.asarray)
    return x


@look_p.def_effectful_abstract_eval
def _look_abstractly(aval: Any, *, number: int) -> Any:
    return aval, _EFFECT


# ── compiled ─────────────────────────────────────────────────────────────────────────────────────────────

HANDS_OVER = True  # on the CPU


def _look_compiled(context: Any, x: Any, *, number: int) -> Any:
    """Ask whether this gradient is wanted, and tell it only then."""
    module, at = context.module_context, next(_ats)
    # Where its parts lie is of no concern here, and functions that are told of it may refuse it.
    context = context.replace(avals_in=[jax.core.ShapedArray(a.shape, a.dtype) for a in context.avals_in])
    alone = getattr(module.axis_context, "num_devices", None) == 1
    hands_over = HANDS_OVER and alone and tuple(module.platforms) == ("cpu",)

    def tell(x: Any) -> None:
        if hands_over:
            tell_p.bind(x, number=number, at=at)
        else:
            io_callback(functools.partial(_told, number, at), None, row(x))

    def look(x: Any, answers: Any, bit: int = 0) -> Any:
        jax.lax.cond((answers >> bit) & 1 != 0, tell, lambda x: None, x)
        return x

    if alone:
        question = _question(context)
        question.points.append((number, at))
        look = functools.partial(look, bit=len(question.points) - 1)
        inner = context.replace(avals_in=[*context.avals_in, _ANSWERS])
        return mlir.lower_fun(look, multiple_results=False)(inner, x, question.answers)

    def asking(x: Any) -> Any:
        question = Question([(number, at)])
        return look(x, io_callback(lambda: question()[0], jax.ShapeDtypeStruct((), np.uint32)))

    return mlir.lower_fun(asking, multiple_results=False)(context, x)


def _told(number: int, at: int, row: Any) -> None:
    HEARING.told(number, row, at)


# What is shared stands in the block, so nothing may be lowered in another place and copied here.
mlir.register_lowering(look_p, _look_compiled, cacheable=False)
_ats = itertools.count(1)  # tell apart where the same watchpoint stands in programs


@tell_p.def_effectful_abstract_eval
def _tell_abstractly(aval: Any, *, number: int, at: int) -> Any:
    return [], _EFFECT


def _tell_compiled(context: Any, x: Any, *, number: int, at: int) -> Any:
    """Hand Python the array itself: on the CPU that is no copy."""

    def tell(array: Any) -> tuple[()]:
        HEARING.told(number, numbers(array), at)
        return ()

    given = context.avals_in
    mlir.emit_python_callback(context, tell, None, [x], given, [], has_side_effect=True, returns_token=False)
    return []


mlir.register_lowering(tell_p, _tell_compiled)


# ── the question ─────────────────────────────────────────────────────────────────────────────────────────

_ANSWERS = jax.core.ShapedArray((), np.dtype(np.uint32))
MARK = "pullback_question"


class Question:
    """What a program asks once for all watchpoints that run together, a bit each: it is calls that cost."""

    def __init__(self, points: Sequence[tuple[int, int]] = ()) -> None:
        self.points = list(points)
        self.answers: Any = None  # in the program

    def __call__(self) -> tuple[np.uint32]:
        return (np.uint32(sum(HEARING.asked(*point) << bit for bit, point in enumerate(self.points))),)


_questions: weakref.WeakValueDictionary[int, Question] = weakref.WeakValueDictionary()


def _question(context: Any) -> Question:
    """Give the question of the block that is being written, with a bit that is free."""
    for operation in ir.InsertionPoint.current.block.operations:
        if MARK in operation.attributes:
            found = _questions[ir.IntegerAttr(operation.attributes[MARK]).value]
            if len(found.points) < 32:
                return found
    made = Question()
    ends = context.replace(avals_in=[], avals_out=[_ANSWERS])
    # `io_callback` comes to this, at three times its cost
    (made.answers,), *_ = mlir.emit_python_callback(
        ends, made, None, [], [], [_ANSWERS], has_side_effect=True, returns_token=False
    )
    kind = ir.IntegerType.get_signless(64)
    made.answers.owner.attributes[MARK] = ir.IntegerAttr.get(kind, id(made))
    _questions[id(made)] = made
    return made


# ── who listens ──────────────────────────────────────────────────────────────────────────────────────────

_listening = jax.make_user_context(False)


class Jax(Framework):
    """Look by primitives."""

    def seen(self, x: Any, number: int) -> Any:
        if not _listening.value or not jnp.issubdtype(x.dtype, jnp.inexact):
            return x
        return watch_p.bind(x, number=number)

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
