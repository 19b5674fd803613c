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
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from pullback.hosts.foreign import Foreign
from pullback.hosts.jax import varying
from pullback.hosts.numpy import callback as on_arrays
from pullback.hosts.numpy.callback import Maps
from pullback.hosts.specs import Spec


def callback(foreign: Foreign, tensors: Sequence[Any], outputs: Sequence[Spec]) -> list[Any]:
    """Run a foreign function on arrays."""
    wide: bool = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    specs = tuple(_canonical(spec, wide) for spec in outputs)
    results: list[Any] = foreign_p.bind(*tensors, called=_Called(foreign), specs=specs, maps=())
    axes = varying.axes_of_any([t for t in tensors if isinstance(t, jax.core.Tracer)])
    # JAX takes the result of a callback for the same on every device
    return [varying.spread(result, axes) for result in results] if axes else results


@functools.lru_cache(maxsize=1024)
def _canonical(spec: Spec, wide: bool) -> Spec:
    """Describe an output as JAX has it: without 64 bits, unless they are switched on."""
    return spec._replace(dtype=jax.dtypes.canonicalize_dtype(on_arrays.dtype(spec.dtype)).name)


class _Called:
    """A foreign function as a parameter of a primitive: hashable, and the same for the same function.

    It is callable and can be referred to weakly, which is why JAX's caches hold it weakly, as they hold
    functions: it goes with the programs that it stands in.
    """

    __slots__ = ("__weakref__", "foreign")

    def __init__(self, foreign: Foreign) -> None:
        self.foreign = foreign

    def __call__(self, arrays: Sequence[Any], specs: Sequence[Spec], maps: Maps) -> list[Any]:
        views = [on_arrays.read_only(array) for array in arrays]
        return on_arrays.own(on_arrays.run(self.foreign, views, specs, maps))

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
def _foreign_impl(*arrays: Any, called: _Called, specs: Sequence[Spec], maps: Maps) -> list[Any]:
    # `np.asarray` of an array of JAX is a view of its memory where that is the CPU's.
    device = _device(arrays)
    return [_array(result, device) for result in called(arrays, specs, maps)]


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
def _foreign_abstract_eval(*avals: Any, called: _Called, specs: Sequence[Spec], maps: Maps) -> list[Any]:
    lengths = on_arrays.lengths([aval.shape for aval in avals], maps)
    return [
        jax.core.ShapedArray((*lengths, *(spec.shape or ())), on_arrays.dtype(spec.dtype)) for spec in specs
    ]


def _foreign_lowering(context: Any, *arrays: Any, called: _Called, specs: Sequence[Spec], maps: Maps) -> Any:
    """Put a call of Python into a program that is compiled."""
    told = on_arrays.telling(lambda *arrays: called(arrays, specs, maps), chained=False)
    if getattr(context.module_context.axis_context, "num_devices", None) == 1:
        # `jax.pure_callback` comes to this, and copies every argument before it calls.
        return mlir.emit_python_callback(
            context,
            told,
            None,
            list(arrays),
            context.avals_in,
            context.avals_out,
            has_side_effect=False,
            returns_token=False,
        )[0]
    return mlir.lower_fun(functools.partial(_by_jax, told, context), multiple_results=True)(context, *arrays)


def _by_jax(told: Any, context: Any, *arrays: Any) -> Any:
    """Call it as JAX does, where data are spread over devices: on one of them, or on each in a shard_map."""
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in context.avals_out]
    results = jax.pure_callback(told, shapes, *arrays)
    count = getattr(context.module_context.axis_context, "num_devices", None)
    if count is None:
        return results
    # else a program would return what lives on one of its devices, and nothing can be done with that
    everywhere = NamedSharding(AbstractMesh((count,), ("device",)), PartitionSpec())
    return [jax.lax.with_sharding_constraint(result, everywhere) for result in results]


mlir.register_lowering(foreign_p, _foreign_lowering)


def _foreign_batch(arrays: Any, axes: Any, *, called: _Called, specs: Sequence[Spec], maps: Maps) -> Any:
    """Make one call of a batch: its axis goes in front, outside those of maps further in."""
    mapped = tuple(axis is not None for axis in axes)
    moved = [
        array if axis is None else jax.numpy.moveaxis(array, axis, 0) for array, axis in zip(arrays, axes)
    ]
    results = foreign_p.bind(*moved, called=called, specs=specs, maps=(mapped, *maps))
    return results, [0] * len(results)


batching.primitive_batchers[foreign_p] = _foreign_batch


# ── its derivative ───────────────────────────────────────────────────────────────────────────────────────

refused_p = Primitive("refused_derivative")
refused_p.multiple_results = True


def _foreign_jvp(primals: Any, tangents: Any, *, called: _Called, **rest: Any) -> Any:
    outputs = foreign_p.bind(*primals, called=called, **rest)
    given = [tangent for tangent in tangents if type(tangent) is not ad.Zero]
    smooth = [jax.numpy.issubdtype(y.dtype, np.inexact) for y in outputs]
    shapes = tuple((y.shape, y.dtype) for y, here in zip(outputs, smooth) if here)
    moved = iter(refused_p.bind(*given, called=called, shapes=shapes) if shapes else ())
    return outputs, [
        next(moved) if here else ad.Zero(jax.typeof(y).to_tangent_aval()) for y, here in zip(outputs, smooth)
    ]


ad.primitive_jvps[foreign_p] = _foreign_jvp


def _refuse(*_: Any, called: _Called, **__: Any) -> NoReturn:
    raise on_arrays.not_differentiable(called.foreign)


@refused_p.def_abstract_eval
def _refused_abstract_eval(*avals: Any, called: _Called, shapes: Any) -> list[Any]:
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in shapes]


def _refused_batch(tangents: Any, axes: Any, *, called: _Called, shapes: Any) -> Any:
    (length,) = {t.shape[axis] for t, axis in zip(tangents, axes) if axis is not None}
    batched = tuple(((length, *shape), dtype) for shape, dtype in shapes)
    return refused_p.bind(*tangents, called=called, shapes=batched), [0] * len(shapes)


refused_p.def_impl(_refuse)
mlir.register_lowering(refused_p, lambda context, *args, **params: _refuse(*args, **params))
batching.primitive_batchers[refused_p] = _refused_batch
ad.primitive_jvps[refused_p] = lambda primals, tangents, **params: _refuse(**params)
ad.primitive_transposes[refused_p] = _refuse
ad.primitive_transposes[foreign_p] = _refuse
