"""Arrays that reach a body through a closure while JAX traces it.

JAX runs a rule apart from the program around it, where such an array is not to be had. It is found by tracing
the body, and handed to the rule as one more input: a constant of a `jit` or a `vmap` then simply works, and
one that is being differentiated is refused by name, because a rule has no cotangent for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any

import jax

from pullback.errors import CapturedTensorError
from pullback.hosts import names, refusals
from pullback.hosts.closed import is_closed
from pullback.hosts.operation import Operation
from pullback.rule import cells, reach

_DEPTH = 2  # an object's attribute, an entry of its list: further in, JAX's own error has to do
_LIBRARIES = ("jax", "numpy", "pullback.", "builtins", "typing")


def named(operation: Operation) -> bool:
    """Tell whether the body, or a pushforward, can reach a traced array by name."""
    if is_closed(operation) and not operation.has_pushforward:
        return False
    return next(_reached(operation), None) is not None


def name_of(operation: Operation, tensor: Any) -> str:
    """Find the name by which a body reaches an array."""
    known = (name for name, value in _reached(operation) if value is tensor)
    return next(known, "") or names.name_of(operation, tensor)


def first_name(operation: Operation) -> str:
    """Name a traced array that the body can reach."""
    return next((name for name, _ in _reached(operation)), "")


def is_stopped(body: Any, place: int, count: int, takers: Sequence[tuple[Any, int] | None] = ()) -> bool:
    """Tell whether a traced body puts a constant through nothing but `stop_gradient`.

    Among its outputs, behind the first `count`, may be residuals, which its derivative takes: the programs
    that take them are looked at too.
    """
    variable = body.invars[place]
    users = [eqn.primitive.name for eqn in body.eqns if any(v is variable for v in eqn.invars)]
    if any(v is variable for v in body.outvars[:count]) or any(user != "stop_gradient" for user in users):
        return False
    handed = [taker for v, taker in zip(body.outvars[count:], takers) if v is variable]
    return all(taker is not None and is_stopped(*taker, len(taker[0].outvars)) for taker in handed)


def _reached(operation: Operation) -> Iterator[tuple[str, Any]]:
    rule = operation.plan.rule
    for name, value in rule.captured():
        yield from _traced(name, value, _DEPTH)
    # a replacement is made of functions of ours around those of the user
    for cell in getattr(getattr(operation, "pull", None), "__closure__", None) or ():
        yield from _traced("", cell.cell_contents, _DEPTH)
    if operation.has_pushforward:
        for name, value in reach(rule.pushforward):
            yield from _traced(name, value, _DEPTH)


def _traced(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """List the traced arrays in a value: itself, in a container, on an object, in reach of a function."""
    if isinstance(value, jax.core.Tracer):
        yield name, value
    elif depth == 0 or isinstance(value, (ModuleType, type, jax.Array)):
        return
    elif isinstance(value, FunctionType):
        if not (value.__module__ or "").startswith(_LIBRARIES):
            for inner, held in cells(value):
                yield from _traced(inner, held, depth - 1)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _traced(f"{name}[{i}]", part, depth - 1)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _traced(f"{name}[{key!r}]", part, depth - 1)
    elif not (type(value).__module__ or "").startswith(_LIBRARIES):
        for attribute, part in getattr(value, "__dict__", {}).items():
            yield from _traced(f"{name}.{attribute}", part, depth - 1)


def refuse(
    operation: Operation | refusals.Named, name: str, shape: tuple[int, ...] | None = None
) -> CapturedTensorError:
    """Say that a captured array is being differentiated."""
    described = "a traced array" if shape is None else f"an array of shape {shape}"
    return refusals.captured_tensor(operation, name, described, "jax.lax.stop_gradient({})")
