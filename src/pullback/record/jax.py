"""JAX's custom derivatives as the recorder sees them.

`jax.custom_vjp` and `jax.custom_jvp` are classes, and `jax.custom_gradient` is made of the first. Whichever
way one was imported, a call of it binds its keywords first, with a function that is listened to: we are back
before the user's code runs, so no line of ours stands in its tracebacks. Nothing here runs an operation of
JAX: one would become part of the program that is being traced.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.record.place import Source, name_of, place_of
from pullback.record.sample import Placeholder, Recorded, Spec
from pullback.rule import reach

if TYPE_CHECKING:
    from pullback.record.recorder import Recorder

MODULE = "jax._src.custom_derivatives"
NEWER = "jax._src.hijax"  # what `jax.custom_vjp` becomes under the option `jax_custom_vjp3`
KINDS = {"custom_vjp": "jax.custom_vjp", "custom_vjp3": "jax.custom_vjp", "custom_jvp": "jax.custom_jvp"}
# Functions through which other makers hold the user's function, by module and name: the cell, and the maker.
WRAPPERS = {
    (MODULE, "custom_gradient.<locals>.wrapped_fun"): ("fun", "jax.custom_gradient"),
    ("equinox._ad", "filter_custom_jvp.__init__.<locals>.fn_wrapper"): ("fn", "equinox.filter_custom_jvp"),
    ("equinox._ad", "filter_custom_vjp._defvjp.<locals>.fn_wrapped"): ("self", "equinox.filter_custom_vjp"),
}


# ── leaves ───────────────────────────────────────────────────────────────────────────────────────────────


def owns(leaf: Any) -> bool:
    """Tell whether a leaf is an array or a tracer."""
    jax = sys.modules.get("jax")
    return jax is not None and hasattr(jax, "Array") and isinstance(leaf, jax.Array)


def freeze(array: Any) -> Any:
    """Copy an array, or the value that a tracer carries; else take shape and dtype."""
    value, cuts = _carried(array)
    if value is None:
        return spec(array)
    if _opaque(value):
        return value if value is array else spec(array)
    try:
        frozen = np.array(value)
    except RuntimeError:  # its buffer was given away, or lies on another machine
        return spec(array)
    for axis in reversed(cuts):
        frozen = np.take(frozen, 0, axis)
    return np.array(frozen)


def spec(array: Any) -> Any:
    """Take the shape and dtype of an array."""
    shape = tuple(n if isinstance(n, int) else None for n in array.shape)
    if _opaque(array):  # a random key: any one will do
        return Placeholder("jax", shape, str(array.dtype))
    return Spec(shape, array.dtype.name)


def _carried(leaf: Any) -> tuple[Any, list[int]]:
    """Follow the tracers of `grad`, `jvp` and `vmap` down to a value, and list the batch axes on the way.

    While `jit` traces there is none.
    """
    import jax

    cuts: list[int] = []
    while isinstance(leaf, jax.core.Tracer):
        axis = getattr(leaf, "batch_dim", None)
        if hasattr(leaf, "primal"):
            leaf = leaf.primal
        elif isinstance(axis, int):
            cuts.append(axis)
            leaf = leaf.val
        else:
            return None, []
    return leaf, cuts


def _opaque(array: Any) -> bool:
    import jax

    return bool(jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended))


def device(array: Any) -> str:
    """Name the place that an array must be put to again: JAX finds it by itself."""
    return ""


def thaw(array: Any, device: str) -> Any:
    """Make an array of JAX's again."""
    import jax

    if isinstance(array, Placeholder):
        shape = tuple(n or 1 for n in array.shape)
        return jax.random.split(jax.random.key(0), shape) if shape else jax.random.key(0)
    return jax.numpy.asarray(array)


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────────


def found(value: Any) -> Recorded | None:
    """Make the record of a rule that stands in a module; None for anything else."""
    jax = sys.modules.get("jax")
    if jax is None or type(value).__name__ not in KINDS or type(value).__module__ not in (MODULE, NEWER):
        return None
    return rule_of(value)


named = found


def described(rule: Any) -> tuple[Any, str]:
    """Give the user's function behind a rule of JAX's, and who made the rule."""
    body = rule.f if type(rule).__name__ == "custom_vjp3" else rule.fun
    place = (getattr(body, "__module__", ""), getattr(body, "__qualname__", ""))
    if place not in WRAPPERS:
        return body, KINDS[type(rule).__name__]
    name, kind = WRAPPERS[place]
    user = dict(zip(body.__code__.co_freevars, body.__closure__ or ()))[name].cell_contents
    return (user.fn if name == "self" else user), kind


def rule_of(rule: Any) -> Recorded:
    """Make the record of a rule; it is itself the function to check."""
    user, kind = described(rule)
    path, line = place_of(user)
    module = str(getattr(user, "__module__", ""))
    name = name_of(user)
    if _holds_tracers(rule, user):
        return Recorded(unavailable, name, kind, module, path, line, "jax")
    # Equinox differentiates its first argument only, which comes third here.
    fixed = (0, 1, 3, 4) if kind == "equinox.filter_custom_vjp" else ()
    return Recorded(rule, name, kind, module, path, line, "jax", user=user, fixed=fixed)


def unavailable(*args: Any, **kwargs: Any) -> Any:
    """Stand for a rule that cannot be run again, and must not be kept: JAX would call that a leak."""
    raise RuntimeError("it closes over a value that was there only while JAX traced it")


def _holds_tracers(rule: Any, user: Any) -> bool:
    jax: Any = sys.modules["jax"]
    if not hasattr(jax, "tree_util") or not hasattr(jax, "core"):  # half imported: nothing was traced yet
        return False
    parts = [user, *(getattr(rule, name, None) for name in ("fwd", "bwd", "jvp"))]
    reached = (value for part in parts if part is not None for _, value in reach(inspect.unwrap(part)))
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(list(reached)))


def _numbered(rule: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Make arrays of the Python numbers that JAX would differentiate."""
    import jax

    dtypes = {float: jax.dtypes.canonicalize_dtype(float), complex: jax.dtypes.canonicalize_dtype(complex)}
    fixed: Any = rule.static_argnums if type(rule).__name__ == "custom_vjp3" else rule.nondiff_argnums

    def number(leaf: Any) -> Any:
        return np.asarray(leaf, dtypes[type(leaf)]) if type(leaf) in dtypes else leaf

    return tuple(a if i in fixed else jax.tree_util.tree_map(number, a) for i, a in enumerate(args))


def _source(rule: Any) -> Source:
    return Source.of(described(rule)[0])


def listeners(recorder: Recorder) -> dict[str, Callable[[Any], Callable[[], None]]]:
    """Give what is done when a module of JAX's is imported; each gives what undoes it."""

    def listen(module: Any) -> Callable[[], None]:
        return _listen(module, recorder)

    return {MODULE: listen, NEWER: listen}


def _listen(module: Any, recorder: Recorder) -> Callable[[], None]:
    kinds: dict[Any, Any] = {
        getattr(module, name): getattr(module, name).__init__ for name in KINDS if hasattr(module, name)
    }
    resolve = module.resolve_kwargs

    @functools.wraps(resolve)
    def resolve_kwargs(fun: Any, args: Any, kwargs: Any) -> Any:
        caller = sys._getframe(1)
        rule = caller.f_locals.get("self") if caller.f_code.co_name == "__call__" else None
        given = resolve(fun, args, kwargs)
        if type(rule) in kinds:
            recorder.called(
                lambda: _source(rule), lambda: (_numbered(rule, given), {}), lambda: rule_of(rule)
            )
        return given

    def telling(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            recorder.made(lambda: _source(self), lambda: rule_of(self))

        return made

    for kind, init in kinds.items():
        kind.__init__ = telling(init)
    module.resolve_kwargs = resolve_kwargs
    _hide()

    def undo() -> None:
        for kind, init in kinds.items():
            kind.__init__ = init
        module.resolve_kwargs = resolve

    return undo


@functools.cache
def _hide() -> None:
    """Keep the lines that run the program out of the tracebacks and source places that JAX shows."""
    for name in ("jax._src.traceback_util", "jax._src.source_info_util"):
        register: Any = getattr(sys.modules.get(name), "register_exclusion", lambda path: None)
        for path in (os.path.dirname(__file__), "<frozen runpy>"):
            register(path)
