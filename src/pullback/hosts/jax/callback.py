"""Running a foreign function in JAX: a primitive of ours.

Evaluated, it is a direct call of Python; compiled, it is a `jax.pure_callback`. A map of it is one call for
the whole batch. Its derivative is a second primitive, which refuses to be computed: a derivative that nobody
asks for does no harm.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from pullback.hosts.base import Foreign, Spec
from pullback.hosts.numpy import callback as on_arrays
from pullback.hosts.numpy.callback import Maps


def callback(foreign: Foreign, tensors: Sequence[Any], outputs: Sequence[Spec]) -> list[Any]:
    """Run a foreign function on arrays."""
    specs = tuple(_canonical(spec, jax.config.jax_enable_x64) for spec in outputs)
    return foreign_p.bind(*tensors, called=_Called(foreign), specs=specs, maps=())  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=1024)
def _canonical(spec: Spec, wide: bool) -> Spec:
    """Describe an output as JAX has it: without 64 bits, unless they are switched on."""
    return spec._replace(dtype=jax.dtypes.canonicalize_dtype(on_arrays.dtype(spec.dtype)).name)


class _Called:
    """A foreign function as a parameter of a primitive, which must be hashable."""

    __slots__ = ("foreign",)

    def __init__(self, foreign: Foreign) -> None:
        self.foreign = foreign

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Called) and other.foreign is self.foreign

    def __hash__(self) -> int:
        return id(self.foreign)

    def __repr__(self) -> str:
        return self.foreign.name


# ── the function ─────────────────────────────────────────────────────────────────────────────────────────

foreign_p = Primitive("foreign")
foreign_p.multiple_results = True


@foreign_p.def_impl
def _evaluate(*arrays: Any, called: _Called, specs: Sequence[Spec], maps: Maps) -> list[Any]:
    # `np.asarray` of an array of JAX is a view of its memory where that is the CPU's.
    views = [on_arrays.read_only(array) for array in arrays]
    results = on_arrays.own(on_arrays.run(called.foreign, views, specs, maps))
    device = _device(arrays)
    return [_array(result, device) for result in results]


def _array(result: Any, device: Any) -> Any:
    """Make an array of JAX; of the memory of a large one, if that is aligned as JAX wants it."""
    if device is None and result.nbytes < _LARGE:
        return jax.numpy.asarray(result)
    return jax.device_put(result, device)


_LARGE = 1 << 16  # bytes; below, a copy takes less than to look whether it is needed


def _device(arrays: Sequence[Any]) -> Any:
    """Find the one device that arrays were put on; None where JAX may choose."""
    for array in arrays:
        if getattr(array, "committed", False) and len(array.devices()) == 1:
            return next(iter(array.devices()))
    return None


@foreign_p.def_abstract_eval
def _abstract(*avals: Any, called: _Called, specs: Sequence[Spec], maps: Maps) -> list[Any]:
    lengths = []
    depths = [0] * len(avals)
    for mapped in maps:
        for i, here in enumerate(mapped):
            if here:
                length = avals[i].shape[depths[i]]
                depths[i] += 1
        lengths.append(length)
    return [_aval((*lengths, *(spec.shape or ())), on_arrays.dtype(spec.dtype), avals) for spec in specs]


def _aval(shape: tuple[int, ...], dtype: Any, avals: Sequence[Any]) -> Any:
    """Describe a result, which varies over the axes of a mesh that any argument varies over."""
    varying = frozenset().union(*(getattr(aval, "vma", ()) for aval in avals))
    return jax.core.ShapedArray(shape, dtype, **({"vma": varying} if varying else {}))


def _compiled(*arrays: Any, called: _Called, specs: Sequence[Spec], maps: Maps) -> Any:
    def run(*arrays: Any) -> list[Any]:
        views = [on_arrays.read_only(array) for array in arrays]
        return on_arrays.own(on_arrays.run(called.foreign, views, specs, maps))

    avals = _abstract(*map(jax.typeof, arrays), called=called, specs=specs, maps=maps)
    results = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    return jax.pure_callback(on_arrays.keeping(run), results, *arrays)


mlir.register_lowering(foreign_p, mlir.lower_fun(_compiled, multiple_results=True))


def _batch(arrays: Any, axes: Any, *, called: _Called, specs: Sequence[Spec], maps: Maps) -> Any:
    """Make one call of a batch: its axis goes in front, outside those of maps further in."""
    mapped = tuple(axis is not None for axis in axes)
    moved = [
        array if axis is None else jax.numpy.moveaxis(array, axis, 0) for array, axis in zip(arrays, axes)
    ]
    results = foreign_p.bind(*moved, called=called, specs=specs, maps=(mapped, *maps))
    return results, [0] * len(results)


batching.primitive_batchers[foreign_p] = _batch


# ── its derivative ───────────────────────────────────────────────────────────────────────────────────────

refused_p = Primitive("refused_derivative")
refused_p.multiple_results = True


def _differentiate(primals: Any, tangents: Any, *, called: _Called, **rest: Any) -> Any:
    outputs = foreign_p.bind(*primals, called=called, **rest)
    given = [tangent for tangent in tangents if type(tangent) is not ad.Zero]
    smooth = [jax.numpy.issubdtype(y.dtype, np.inexact) for y in outputs]
    shapes = tuple((y.shape, y.dtype) for y, here in zip(outputs, smooth) if here)
    moved = iter(refused_p.bind(*given, called=called, shapes=shapes) if shapes else ())
    return outputs, [
        next(moved) if here else ad.Zero.from_primal_value(y) for y, here in zip(outputs, smooth)
    ]


ad.primitive_jvps[foreign_p] = _differentiate


def _refuse(*_: Any, called: _Called, **__: Any) -> NoReturn:
    raise on_arrays.not_differentiable(called.foreign)


@refused_p.def_abstract_eval
def _abstract_refused(*avals: Any, called: _Called, shapes: Any) -> list[Any]:
    return [_aval(shape, dtype, avals) for shape, dtype in shapes]


def _batch_refused(tangents: Any, axes: Any, *, called: _Called, shapes: Any) -> Any:
    (length,) = {t.shape[axis] for t, axis in zip(tangents, axes) if axis is not None}
    batched = tuple(((length, *shape), dtype) for shape, dtype in shapes)
    return refused_p.bind(*tangents, called=called, shapes=batched), [0] * len(shapes)


refused_p.def_impl(_refuse)
mlir.register_lowering(refused_p, lambda context, *args, **params: _refuse(*args, **params))
batching.primitive_batchers[refused_p] = _batch_refused
ad.primitive_jvps[refused_p] = lambda primals, tangents, **params: _refuse(**params)
ad.primitive_transposes[refused_p] = _refuse
ad.primitive_transposes[foreign_p] = _refuse
