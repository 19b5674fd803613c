"""Running a function with every rule inside it bypassed, so that JAX differentiates the bodies.

This is the checker's first oracle. `jax.custom_vjp`, `jax.custom_jvp` and pullback's own rules are run as
their plain bodies, however deep in a function they are. Nothing is compiled meanwhile: a function that was
traced with its rules has them in its trace, and one traced without them must not be kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import jax

from pullback.hosts.base import Met, meeting
from pullback.hosts.jax import HOST
from pullback.rule import EXACT

# Only the calls of the checker's own thread are bypassed.
_met: ContextVar[list[Met] | None] = ContextVar("met", default=None)


@contextlib.contextmanager
def bypassed() -> Iterator[list[Met]]:
    """Run rules as their plain bodies; the list collects the rules met."""
    with meeting(HOST) as met, jax.disable_jit(), _plain(jax.custom_vjp), _plain(jax.custom_jvp):
        token = _met.set(met)
        try:
            yield met
        finally:
            _met.reset(token)


@contextlib.contextmanager
def _plain(kind: Any) -> Iterator[None]:
    """Let the objects of a class call their function instead of their rule."""
    call = kind.__call__

    def body_only(self: Any, *args: Any, **kwargs: Any) -> Any:
        met = _met.get()
        if met is None or native(self):
            return call(self, *args, **kwargs)
        met.append(Met(name_of(self), EXACT))
        return self.fun(*args, **kwargs)

    kind.__call__ = body_only
    try:
        yield
    finally:
        kind.__call__ = call


def written(rule: Any) -> Callable[..., Any]:
    """Give the function that the user wrote: others, `jax.custom_gradient` for one, hide it in a closure."""
    function = rule.fun
    hidden = getattr(function, "__module__", None) in ("jax._src.custom_derivatives", "equinox._ad")
    for cell in (getattr(function, "__closure__", None) or ()) if hidden else ():
        if callable(cell.cell_contents):
            return cell.cell_contents
    return function


def name_of(rule: Any) -> str:
    """Name a rule of JAX after its function."""
    return str(getattr(written(rule), "__name__", "rule"))


def native(rule: Any) -> bool:
    """Tell a rule of JAX itself: it is what its function is, and stays."""
    parts = (written(rule), getattr(rule, "bwd", None) or getattr(rule, "jvp", None))
    return all(str(getattr(part, "__module__", "")).partition(".")[0] in ("jax", "jaxlib") for part in parts)
