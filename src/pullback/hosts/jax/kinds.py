"""Kinds of operations, as users name them in an override, and as they stand in a jaxpr.

A kind is the name of a primitive (`tanh`), or of a function that JAX keeps whole (`relu`): a jitted one, or
one with a derivative of its own. A function of JAX stands for the one thing it is traced to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive

from pullback.errors import OverrideError
from pullback.hosts import refusals

_OURS = "pullback_call"  # the primitive of a rule of this library
JITTED = ("jit", "pjit", "closed_call", "core_call")
NATIVE = ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")  # rules of JAX's own
CALLS = JITTED + NATIVE  # primitives that call one function


def name(kind: Any) -> str:
    """Name a kind as a report does."""
    if isinstance(kind, Primitive):
        return str(kind.name)
    return kind if isinstance(kind, str) else str(getattr(kind, "__name__", kind))


def in_jaxpr(kind: Any) -> str:
    """Find the name that a kind has in a jaxpr."""
    if isinstance(kind, (str, Primitive)):
        return name(kind)
    if not callable(kind) or isinstance(kind, type):
        raise _no_operation(kind, "it is nothing that runs")
    made = _traced(kind)
    if len(made) != 1:
        raise _no_operation(kind, f"it is made of {', '.join(made)}" if made else "it could not be traced")
    return made[0]


def _traced(function: Any) -> list[str]:
    """List what a function of one, two or three arrays is traced to."""
    for count in (1, 2, 3):
        try:
            jaxpr = jax.make_jaxpr(function)(*[jnp.ones((2, 2))] * count).jaxpr
        except (TypeError, ValueError):
            continue
        return list(dict.fromkeys(names(eqn)[0] for eqn in jaxpr.eqns))
    return []


def _no_operation(kind: Any, why: str) -> OverrideError:
    expected = "a function that runs one operation, or the name of an operation or of a jitted function"
    return refusals.no_operation(name(kind), why, expected, 'pb.override(model, {"tanh": gradient})')


def names(eqn: Any) -> list[str]:
    """List the names that an equation answers to: of the function it calls, then of its primitive."""
    known = _function_name(eqn)
    return [known, str(eqn.primitive.name)] if known else [str(eqn.primitive.name)]


def is_ours(eqn: Any) -> bool:
    """Tell whether an equation is a rule of this library: its gradient is the one it says."""
    return bool(eqn.primitive.name == _OURS)


def _function_name(eqn: Any) -> str:
    if not is_ours(eqn) and eqn.primitive.name not in CALLS:
        return ""
    known = eqn.params.get("name") or getattr(_debug_info(eqn), "func_name", None)
    return str(known or "").split(" ")[0]


def function(eqn: Any) -> Any:
    """Give the function that an equation calls, a jaxpr or a closed one; None where it calls none."""
    return next((eqn.params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in eqn.params), None)


def _debug_info(eqn: Any) -> Any:
    """Give what is known of the function that an equation calls."""
    program = function(eqn)
    return getattr(getattr(program, "jaxpr", program), "debug_info", None)


def input_names(eqn: Any, places: list[int]) -> list[str]:
    """Name the inputs of an operation: as its function does, or x, y, z."""
    known = list(getattr(_debug_info(eqn), "arg_names", None) or ())
    if len(known) == len(eqn.invars) and all(str(found).isidentifier() for found in known):
        return [str(known[i]) for i in places]
    return ["x", "y", "z"][: len(places)] if len(places) <= 3 else [f"input_{i}" for i in range(len(places))]


def subjaxprs(eqn: Any) -> Iterator[Any]:
    """List the jaxprs in the parameters of an equation."""
    for value in eqn.params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            part = getattr(part, "jaxpr", part)
            if hasattr(part, "eqns"):
                yield part
