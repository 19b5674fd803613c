"""JAX as the recorder sees it.

Nothing here runs an operation of JAX: one would become part of the program that is being traced.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.record.framework import Framework
from pullback.record.sample import Placeholder, Spec
from pullback.view.jax import native, pulled
from pullback.view.native import Listen, Listener

NUMBERS = (int, float, complex)


class Jax(Framework):
    """Copy arrays, and the values that tracers carry."""

    natives = native
    loggers = ("absl", "jax")

    def listeners(self, listener: Listener) -> dict[str, Listen]:
        shown = ("jax._src.traceback_util", "jax._src.source_info_util")
        return {**super().listeners(listener), **dict.fromkeys(shown, _hidden)}

    def owns(self, leaf: Any) -> bool:
        jax = sys.modules.get("jax")
        if jax is None or not hasattr(jax, "Array"):
            return False
        # A number that a transformation was handed keeps its type there, and has a dtype beside.
        return isinstance(leaf, jax.Array) or (isinstance(leaf, NUMBERS) and hasattr(leaf, "dtype"))

    def spec(self, tensor: Any) -> Any:
        shape = tuple(n if isinstance(n, int) else None for n in getattr(tensor, "shape", ()))
        if _opaque(tensor):  # a random key: any one will do
            return Placeholder("jax", shape, str(tensor.dtype))
        return Spec(shape, tensor.dtype.name)

    def trained(self, tensor: Any) -> bool:
        import jax

        return isinstance(tensor, jax.core.Tracer)

    def operation(self, kind: str, names: Sequence[str]) -> Callable[..., Any] | None:
        import jax

        return next((getattr(m, kind) for m in (jax.lax, jax.nn, jax.numpy) if hasattr(m, kind)), None)

    def carried(self, tensor: Any) -> tuple[Any, list[int]]:
        import jax

        axes: list[int] = []
        while isinstance(tensor, jax.core.Tracer):
            axis = getattr(tensor, "batch_dim", None)
            if hasattr(tensor, "primal"):
                tensor = tensor.primal
            elif isinstance(axis, int):
                axes.append(axis)
                tensor = tensor.val
            else:
                return None, []
        return tensor, axes

    def copied(self, value: Any) -> Any:
        if _opaque(value):
            return value
        try:
            return np.asarray(value, value.dtype)
        except RuntimeError:  # its buffer was given away, or lies on another machine
            return None

    def thaw(self, array: Any, device: str) -> Any:
        import jax

        if isinstance(array, Placeholder):
            shape = tuple(n or 1 for n in array.shape)
            return jax.random.split(jax.random.key(0), shape) if shape else jax.random.key(0)
        return jax.numpy.asarray(array)


def _opaque(array: Any) -> bool:
    import jax

    return bool(jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended))


@functools.cache
def _hidden(module: Any) -> contextlib.AbstractContextManager[None]:
    """Keep the lines that run the program out of the tracebacks and source places that JAX shows."""
    for path in (os.path.dirname(__file__), native.__file__, pulled.__file__, "<string>"):
        getattr(module, "register_exclusion", lambda path: None)(path)
    return contextlib.nullcontext()


FRAMEWORK = Jax()
