"""Tracing a function to a jaxpr, in the middle of whatever JAX traces.

`jax.make_jaxpr` does the same by way of a `jax.jit`, which takes longer to read its arguments and to make
keys for its caches than a short body or `grad` takes to trace. There is nothing to find in those caches: each
call of a rule closes over its own arrays.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jax.api_util import debug_info
from jax.extend.linear_util import wrap_init
from jax.interpreters import partial_eval


class Traced(NamedTuple):
    """A traced function: its program, and the arrays that it closes over, which come before its arguments.

    They stand apart: a program may live as long as what is compiled of it, a traced array must not.
    """

    jaxpr: Any
    consts: list[Any]
    given: list[int]  # which of its results are arrays; the others are None


def trace(function: Callable[[list[Any]], Sequence[Any]], types: Sequence[Any], name: str) -> Traced:
    """Trace a function from a list of arrays to a list of arrays, or None; JAX's errors name it so."""
    flat = _Flat(function)
    wrapped = wrap_init(flat, debug_info=_described(name, len(types)))
    jaxpr, _, consts = partial_eval.trace_to_jaxpr_dynamic(wrapped, types)[:3]
    return Traced(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]), consts, flat.given)


@dataclasses.dataclass(eq=False)
class _Flat:
    """A function as JAX traces it: one argument each, and no result that is None."""

    function: Callable[[list[Any]], Sequence[Any]]
    given: list[int] = dataclasses.field(default_factory=list)

    def __call__(self, *arrays: Any) -> list[Any]:
        self.given, results = [], []
        for i, result in enumerate(self.function(list(arrays))):
            if result is not None:
                self.given.append(i)
                results.append(result)
        return results


def loop_counts(params: dict[str, Any]) -> tuple[int, int]:
    """Count the constants and the carried values of a `scan`, from its parameters."""
    if "ft_in" not in params:  # before 0.11
        return params["num_consts"], params["num_carry"]
    constants, carried, _ = params["ft_in"].unpack()
    return len(list(constants)), len(list(carried))


@functools.lru_cache(maxsize=512)
def _described(name: str, count: int) -> Any:
    def function(*tensors: Any) -> None: ...

    signature = inspect.signature(function)
    return debug_info("pullback", function, (0,) * count, {}, sourceinfo=name, signature=signature)
