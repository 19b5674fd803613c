"""The JAX host: eager mode, `jit`, every transformation.

This file speaks of single arrays. JAX hands a rule dL/dz for a complex z; rules are written for the
conjugate of that, as TensorFlow and PyTorch have it, and the conversion is made here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from pullback.errors import UnsupportedInputError
from pullback.hosts.base import Foreign, Kind, Met, Opener, Operation, Spec, summed_axes
from pullback.hosts.jax import arrays, callback


class JaxHost:
    """Execute operations in JAX."""

    name = "JAX"
    bypassed: list[Met] | None = None  # while the checker runs bodies without their rules: the rules met
    arrays = arrays

    def owns(self, kind: type) -> bool:
        if issubclass(kind, jax.Array):  # concrete arrays; tracers are known by their class
            return True
        return issubclass(kind, jax.core.Tracer) or (
            hasattr(kind, "__jax_array__") and any(b.__module__.startswith("keras.") for b in kind.__mro__)
        )

    def opener(self, value: Any) -> Opener | None:
        return None if jax.tree_util.all_leaves([value]) else _open

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, jax.Array)

    def plain(self, values: Sequence[Any]) -> bool:
        return all(isinstance(v, jax.Array) and jnp.issubdtype(v.dtype, jnp.floating) for v in values)

    def tensor(self, value: Any, *, where: str, argument: str) -> Any:
        array = value if isinstance(value, jax.Array) else jnp.asarray(value)
        if jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended):
            raise UnsupportedInputError.about(
                where,
                found=f"`{argument}` has dtype {array.dtype}",
                expected="a floating, complex, integer or boolean array",
                fix="jax.random.key_data(key)",
            )
        return array

    def spec(self, tensor: Any) -> Spec:
        array = tensor if hasattr(tensor, "dtype") else jnp.asarray(tensor)
        kinds: list[tuple[Any, Kind]] = [
            (jnp.floating, "floating"),
            (jnp.complexfloating, "complex"),
            (jnp.integer, "integer"),
        ]
        found: Kind = next((kind for base, kind in kinds if jnp.issubdtype(array.dtype, base)), "other")
        return Spec(tuple(array.shape), array.dtype.name, found)

    def differentiable(self, tensor: Any) -> bool:
        return bool(jnp.issubdtype(tensor.dtype, jnp.inexact))

    def outline(self, output: Any) -> Any:
        return output.shape, output.dtype

    def zeros(self, like: Any) -> Any:
        return jnp.zeros(*like)

    def fit(self, cotangents: Sequence[Any], likes: Sequence[Any]) -> bool:
        return all(
            isinstance(c, jax.Array) and c.shape == x.shape and c.dtype == x.dtype
            for c, x in zip(cotangents, likes)
        )

    def conform(self, cotangent: Any, like: Any) -> Any:
        return jnp.asarray(cotangent).astype(like.dtype)

    def unbroadcast(self, cotangent: Any, like: Any) -> Any:
        cotangent = jnp.asarray(cotangent)
        axes = summed_axes(cotangent.shape, jnp.shape(like))
        return cotangent.sum(axes).reshape(jnp.shape(like)) if axes else cotangent

    def conjugate(self, tensor: Any) -> Any:
        return jnp.conj(tensor) if jnp.iscomplexobj(tensor) else tensor

    def run(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], where: str
    ) -> Any:
        return function(*args, **kwargs)

    def apply(self, operation: Operation, tensors: list[Any]) -> list[Any]:
        if self.bypassed is not None:
            self.bypassed.append(Met(operation.name, operation.intent))
            return operation.forward(tensors)[0]

        @jax.custom_gradient
        def native(*tensors: Any) -> Any:
            outputs, pull = operation.forward(list(tensors))

            def grad(cotangents: Any) -> Any:
                got = pull([self.conjugate(c) for c in cotangents]).inputs
                return tuple(
                    jnp.zeros_like(x) if c is None else self.conjugate(c) for c, x in zip(got, tensors)
                )

            return tuple(outputs), grad

        return list(native(*tensors))

    def callback(self, foreign: Foreign, tensors: Sequence[Any], outputs: Sequence[Spec]) -> list[Any]:
        return callback.callback(foreign, tensors, outputs)

    def vjp(
        self, function: Callable[..., Any], inputs: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        _, pull = jax.vjp(lambda *xs: list(function(*xs)), *inputs)
        return [self.conjugate(c) for c in pull([self.conjugate(c) for c in cotangents])]

    def idle(self, tensors: Sequence[Any]) -> bool:
        return self.bypassed is None and not any(isinstance(t, jax.core.Tracer) for t in tensors)

    def subject(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from pullback.hosts.jax.subject import subject

        return subject(function, *args, **kwargs)

    def override(
        self,
        function: Any,
        gradients: Mapping[Any, Any],
        make: Callable[..., Any],
        check: Callable[..., None],
    ) -> Any:
        from pullback.hosts.jax.override import override

        return override(function, gradients, make, check)


def _open(value: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Take one level of a registered structure apart."""
    parts, structure = jax.tree_util.tree_flatten(value, is_leaf=lambda part: part is not value)
    return parts, functools.partial(jax.tree_util.tree_unflatten, structure)


HOST = JaxHost()
