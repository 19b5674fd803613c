"""Tracing a function to a jaxpr, in the middle of whatever JAX traces.

`jax.make_jaxpr` does the same by way of a `jax.jit`, which takes longer to read its arguments and to make
keys for its caches than a short body or `grad` takes to trace. There is nothing to find in those caches: each
call of a rule closes over its own arrays.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from jax.api_util import debug_info
from jax.extend.core import ClosedJaxpr
from jax.extend.linear_util import wrap_init
from jax.interpreters import partial_eval


def trace(function: Callable[..., Sequence[Any]], types: Sequence[Any], name: str) -> Any:
    """Trace a function of arrays of these types, which returns a list of arrays; JAX's errors name it so."""
    wrapped = wrap_init(function, debug_info=_described(name, len(types)))
    jaxpr, _, consts = partial_eval.trace_to_jaxpr_dynamic(wrapped, types)[:3]
    return ClosedJaxpr(jaxpr, consts)


@functools.lru_cache(maxsize=512)
def _described(name: str, count: int) -> Any:
    def function(*tensors: Any) -> None: ...

    signature = inspect.signature(function)
    return debug_info("pullback", function, (0,) * count, {}, sourceinfo=name, signature=signature)
