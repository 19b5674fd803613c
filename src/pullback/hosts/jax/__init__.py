"""The JAX host: eager mode, `jit`, every transformation.

`apply.py` gives an operation its own derivative; this file speaks of single arrays. JAX hands a rule dL/dz
for a complex z; rules are written for the conjugate of that, as TensorFlow and PyTorch have it, and the
conversion is made where a pullback is called.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pullback.dtypes import Kind, kind
from pullback.hosts import refusals
from pullback.hosts.base import Host, Linear, Opener
from pullback.hosts.jax import arrays, callback, control
from pullback.hosts.jax.apply import apply
from pullback.hosts.jax.run import run
from pullback.hosts.keras import is_weight
from pullback.hosts.operation import Operation
from pullback.hosts.overrides import Gradients
from pullback.hosts.specs import Spec, summed_axes

_SMOOTH = ("floating", "complex")

# Asked several times in every call: what a type and a dtype are is found once.
_kind: Callable[[Any], Kind] = functools.cache(lambda dtype: kind(dtype.name))
_is_array: Callable[[type], bool] = functools.cache(
    lambda kind: issubclass(kind, (jax.Array, jax.core.Tracer))
)


_LOOPS = frozenset(("scan", "fori_loop", "while_loop", "map", "associative_scan"))


class JaxHost(Host):
    """Execute operations in JAX."""

    name = "JAX"
    silent = True
    arrays: Any = arrays

    def owns(self, kind: type) -> bool:
        return _is_array(kind) or (is_weight(kind) and hasattr(kind, "__jax_array__"))

    def opener(self, value: Any) -> Opener | None:
        return None if jax.tree_util.all_leaves([value]) else _open

    def stepwise(self, function: Any) -> contextlib.AbstractContextManager[None]:
        # A loop is compiled at every call, because its body is a new function each time.
        names = getattr(getattr(function, "__code__", None), "co_names", ())
        return jax.disable_jit() if _LOOPS & {*names} else contextlib.nullcontext()

    def is_tensor(self, value: Any) -> bool:
        return _is_array(type(value))

    def ready(self, values: Sequence[Any]) -> bool:
        for value in values:
            if not _is_array(type(value)):
                return False
            if _kind(value.dtype) != "floating":
                return False
        return True

    def tensor(self, value: Any, *, where: str, argument: str) -> Any:
        if _is_array(type(value)):
            return value
        refusals.require_numbers(value, where, argument)
        return jnp.asarray(value)

    def spec(self, tensor: Any) -> Spec:
        array = tensor if hasattr(tensor, "dtype") else jnp.asarray(tensor)
        return Spec(tuple(array.shape), array.dtype.name, _kind(array.dtype))

    def differentiable(self, tensor: Any) -> bool:
        return _kind(tensor.dtype) in _SMOOTH

    def outline(self, output: Any) -> Any:
        return output.shape, output.dtype

    def lone(self, output: Any) -> Any:
        smooth = _is_array(type(output)) and _kind(output.dtype) in _SMOOTH
        return (output.shape, output.dtype) if smooth else None

    def zeros(self, like: Any) -> Any:
        shape, dtype = like
        if jax.dtypes.issubdtype(dtype, jax.dtypes.extended):  # random keys have no zero
            return np.zeros(shape, jax.dtypes.float0)
        return jnp.zeros(shape, dtype)

    def fit(self, cotangents: Sequence[Any], likes: Sequence[Any]) -> bool:
        for cotangent, like in zip(cotangents, likes):
            fits = _is_array(type(cotangent)) and cotangent.dtype == like.dtype
            if not (fits and cotangent.shape == like.shape):
                return False
        return True

    def conform(self, cotangent: Any, like: Any) -> Any:
        return jnp.asarray(cotangent).astype(like.dtype)

    def unbroadcast(self, cotangent: Any, like: Any) -> Any:
        cotangent = jnp.asarray(cotangent)
        axes = summed_axes(cotangent.shape, jnp.shape(like))
        return cotangent.sum(axes).reshape(jnp.shape(like)) if axes else cotangent

    def conjugate(self, tensor: Any) -> Any:
        return jnp.conj(tensor) if jnp.iscomplexobj(tensor) else tensor

    run = staticmethod(run)

    def apply(self, operation: Operation, tensors: list[Any]) -> list[Any]:
        if self.bypassed is not None and self.bypasses(operation):
            return operation.forward(tensors)[0]
        return apply(operation, tensors)

    callback = staticmethod(callback.callback)

    def pullback(self, function: Callable[..., Any], inputs: Sequence[Any]) -> Linear:
        _, pull = jax.vjp(lambda *xs: list(function(*xs)), *inputs)
        return lambda cotangents: [self.conjugate(c) for c in pull([self.conjugate(c) for c in cotangents])]

    def pushforward(self, function: Callable[..., Any], inputs: Sequence[Any]) -> Linear:
        _, push = jax.linearize(lambda *xs: list(function(*xs)), *inputs)
        return lambda tangents: list(push(*tangents))

    loop = staticmethod(control.loop)
    repeat = staticmethod(control.repeat)
    require = staticmethod(control.require)

    def readable(self, tensor: Any) -> bool:
        return not isinstance(tensor, jax.core.Tracer)

    def recording(self, tensors: Sequence[Any]) -> bool:
        # who differentiates a program may come when it is traced already
        return self.bypassed is None and any(isinstance(tensor, jax.core.Tracer) for tensor in tensors)

    def idle(self, tensors: Sequence[Any]) -> bool:
        return self.bypassed is None and not any(isinstance(t, jax.core.Tracer) for t in tensors)

    def override(self, function: Any, gradients: Gradients) -> Any:
        from pullback.hosts.jax.override import override

        return override(function, gradients)


def _open(value: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Take one level of a registered structure apart."""
    parts, structure = jax.tree_util.tree_flatten(value, is_leaf=lambda part: part is not value)
    return parts, functools.partial(jax.tree_util.tree_unflatten, structure)


HOST = JaxHost()
