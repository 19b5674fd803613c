"""JAX's own rules.

`jax.custom_vjp` and `jax.custom_jvp` are classes, and `jax.custom_gradient` and Equinox's makers are made of
them. Whichever way one was imported, a call of it binds its keywords first, with a function that is listened
to: we are back before the user's code runs, so no line of ours stands in its tracebacks. Nothing that listens
runs an operation of JAX: one would become part of the program that is being traced.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pullback import tree
from pullback.hosts.base import Meeting
from pullback.patched import patched
from pullback.rule import name_of, reach
from pullback.view.definition import location_of, module_of, package_of
from pullback.view.jax import equinox, pulled
from pullback.view.native import ByHand, Keeps, Listen, Listener, Native, Opening, collecting, is_bypassed

MODULE = "jax._src.custom_derivatives"
NEWER = "jax._src.hijax"  # what `jax.custom_vjp` becomes under the option `jax_custom_vjp3`
KINDS = {"custom_vjp": "jax.custom_vjp", "custom_vjp3": "jax.custom_vjp", "custom_jvp": "jax.custom_jvp"}
# Functions through which other makers hold the user's function, by module and name: the cell, and the maker.
WRAPPERS = {
    (MODULE, "custom_gradient.<locals>.wrapped_fun"): ("fun", "jax.custom_gradient"),
    ("equinox._ad", "filter_custom_jvp.__init__.<locals>.fn_wrapper"): ("fn", equinox.JVP),
    ("equinox._ad", "filter_custom_vjp._defvjp.<locals>.fn_wrapped"): ("self", equinox.VJP),
}


class CustomRule(Native):
    """A `custom_vjp` or `custom_jvp`; `called` is what is called in its place, such as a jitted one."""

    framework = "jax"

    def __init__(self, rule: Any, called: Any = None) -> None:
        self.rule = rule
        self.called = rule if called is None else called
        newer = type(rule).__name__ == "custom_vjp3"
        self.body = user = rule.f if newer else rule.fun
        self.nondiff = sorted(rule.static_argnums) if newer else list(rule.nondiff_argnums)
        self.symbolic_zeros = bool(rule.symz if newer else getattr(rule, "symbolic_zeros", False))
        self.kind = KINDS[type(rule).__name__]
        named = (getattr(user, "__module__", ""), getattr(user, "__qualname__", ""))
        if named in WRAPPERS:
            name, self.kind = WRAPPERS[named]
            user = dict(zip(user.__code__.co_freevars, user.__closure__ or ()))[name].cell_contents
            user = user.fn if name == "self" else user
        super().__init__(user)
        if self.kind in (equinox.VJP, equinox.JVP):
            self.fixed = equinox.FIXED if self.kind == equinox.VJP else ()
            self.signature = equinox.signature(self.kind, self.body, user)
        name = name_of(user)
        self.spelled = name if name.isidentifier() else ""

    def called_as(self, path: str) -> str:
        return equinox.called_as(path, self.user) if self.kind == equinox.JVP else path

    def is_jax(self) -> bool:
        """Tell a rule of JAX itself: it is what its function is, and stays."""
        return self.owner in ("jax", "jaxlib")

    @property
    def anchor(self) -> Any:
        return self.rule

    def parts(self) -> dict[str, Any]:
        gradients = {name: getattr(self.rule, name, None) for name in ("fwd", "bwd", "jvp")}
        held = {name: part for name, part in gradients.items() if part is not None}
        return {"function": self.body, **held, "nondiff": tuple(self.nondiff)}

    @property
    def gives(self) -> bool:
        return len(self.parts()) > 2  # beside the function and its statics

    @functools.cached_property
    def given(self) -> list[Any]:
        """List the functions that somebody gave: the function, and its gradient."""
        parts = self.parts()
        jvp = inspect.getclosurevars(parts["jvp"]).nonlocals if inspect.isfunction(parts.get("jvp")) else {}
        given = [self.user, parts.get("bwd"), parts.get("jvp"), *(jvp.get("jvps") or ())]  # of `defjvps`
        return [part for part in given if part is not None]

    @property
    def owner(self) -> str:
        return package_of(map(module_of, self.given))

    @functools.cached_property
    def location(self) -> tuple[str, int]:
        return location_of(
            next((part for part in self.given if not package_of([module_of(part)])), self.user)
        )

    def kept(self) -> tuple[Any, Any]:
        return (_unavailable, None) if self._holds_tracers() else (self.called, self.user)

    def _holds_tracers(self) -> bool:
        jax: Any = sys.modules["jax"]
        if not hasattr(jax, "tree_util") or not hasattr(jax, "core"):  # half imported: nothing was traced yet
            return False
        parts = [self.user, *(getattr(self.rule, name, None) for name in ("fwd", "bwd", "jvp"))]
        reached = (value for part in parts if part is not None for _, value in reach(inspect.unwrap(part)))
        return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(list(reached)))

    def passed_over(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        if not self.nondiff:
            return []
        values = inspect.signature(self.body).bind(*args, **kwargs).args
        return tree.flatten([values[i] for i in self.nondiff if i < len(values)])[0]

    def by_hand(self) -> ByHand | None:
        if type(self.rule).__name__ == "custom_jvp" or not self.rule.bwd or self.symbolic_zeros:
            return None
        return self._pull

    def opened(self) -> ByHand | None:
        if type(self.rule).__name__ != "custom_jvp":
            return self.by_hand()
        given = self.rule.jvp is not None and not self.symbolic_zeros
        return self._transpose if given else None

    def _transpose(self, args: Sequence[Any], kwargs: dict[str, Any], cotangents: Sequence[Any]) -> Opening:
        """Give the gradient that the tangents of a `custom_jvp` make, once they are transposed."""
        import jax
        from jax import numpy as jnp

        from pullback.hosts.jax import HOST

        bound = inspect.signature(self.body).bind(*args, **kwargs)
        bound.apply_defaults()
        values = bound.args
        fixed = [values[i] for i in self.nondiff]
        primals = tuple(value for i, value in enumerate(values) if i not in self.nondiff)
        leaves, structure = jax.tree_util.tree_flatten(primals)
        moving = [jnp.issubdtype(jnp.result_type(leaf), jnp.inexact) for leaf in leaves]
        push = self.rule.jvp
        self.body(*values)  # once, for who listens to the forward

        def pushed(tangents: Sequence[Any]) -> list[Any]:
            rest = iter(tangents)
            zeros = (np.zeros(jnp.shape(leaf), jax.dtypes.float0) for leaf in leaves)
            every = [next(rest) if moves else zero for moves, zero in zip(moving, zeros)]
            found = push(*fixed, primals, jax.tree_util.tree_unflatten(structure, every))[1]
            return [
                t for t in jax.tree_util.tree_leaves(found) if getattr(t, "dtype", None) != jax.dtypes.float0
            ]

        def pull(*given: Any) -> list[Any]:
            some = [jnp.cos(jnp.arange(leaf.size, dtype=jnp.result_type(leaf))).reshape(jnp.shape(leaf))
                    for leaf, moves in zip(map(jnp.asarray, leaves), moving) if moves]  # fmt: skip
            pushed(some)  # once with numbers, for who listens
            rest = iter(jax.vjp(pushed, some)[1]([HOST.conjugate(d) for d in given])[0])
            return [HOST.conjugate(next(rest)) if moves else None for moves in moving]

        def by_argument(given: Sequence[Any]) -> list[Any]:
            rest = iter(jax.tree_util.tree_unflatten(structure, given))
            return [None if i in self.nondiff else next(rest) for i in range(len(values))]

        return pull, list(cotangents), by_argument

    def _pull(self, args: Sequence[Any], kwargs: dict[str, Any], cotangents: Sequence[Any]) -> Opening:
        """Run the forward; what the gradient returns is laid out as one cotangent, or None, per argument."""
        import jax
        from jax import numpy as jnp

        from pullback.hosts.jax import HOST

        signature = inspect.signature(self.body)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = bound.args
        rest = iter(cotangents)

        def filled(outputs: Any) -> Any:
            leaves, structure = jax.tree_util.tree_flatten(outputs)
            found = [
                HOST.conjugate(next(rest))
                if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)
                else np.zeros(jnp.shape(leaf), jax.dtypes.float0)
                for leaf in leaves
            ]
            return jax.tree_util.tree_unflatten(structure, found)

        def by_argument(given: Any) -> list[Any]:
            moving = [i for i in range(len(values)) if i not in self.nondiff]
            if self.kind == "jax.custom_gradient" and len(moving) == 1:
                given = (given,) if not isinstance(given, (tuple, list)) else given
            if not isinstance(given, (tuple, list)) or len(given) != len(moving):
                raise ValueError("the cotangents cannot be matched to the inputs")
            by_index = dict(zip(moving, jax.tree_util.tree_map(HOST.conjugate, list(given))))
            return [by_index.get(index) for index in range(len(values))]

        if self.kind == "jax.custom_gradient":
            outputs, grad = self.user(*values)
            return grad, [filled(outputs)], by_argument
        outputs, residuals = self.rule.fwd(*values)
        fixed = [values[i] for i in self.nondiff]
        return self.rule.bwd, [*fixed, residuals, filled(outputs)], by_argument

    def remade(self, parts: Mapping[Any, Any]) -> Any:
        import jax

        if self.kind == "jax.custom_gradient":
            return jax.custom_gradient(parts[self.user]) if self.user in parts else None
        held = {name: getattr(self.rule, name, None) for name in ("fwd", "bwd", "jvp")}
        held = {name: parts.get(part, part) for name, part in held.items()}
        body = parts.get(self.body, self.body)
        if self.kind == "jax.custom_jvp" and held["jvp"] is not None:
            rule: Any = jax.custom_jvp(body, nondiff_argnums=tuple(self.nondiff))
            tangents = inspect.getclosurevars(held["jvp"]).nonlocals.get("jvps")
            if module_of(held["jvp"]).partition(".")[0] == "jax" and tangents is not None:  # of `defjvps`
                rule.defjvps(*tangents)
            else:
                rule.defjvp(held["jvp"], symbolic_zeros=self.symbolic_zeros)
            return rule
        if self.kind == "jax.custom_vjp" and held["fwd"] is not None and held["bwd"] is not None:
            rule = jax.custom_vjp(body, nondiff_argnums=tuple(self.nondiff))
            rule.defvjp(held["fwd"], held["bwd"], symbolic_zeros=self.symbolic_zeros)
            return rule
        return None

    def numbered(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Make arrays of the Python numbers that JAX would differentiate."""
        import jax

        dtypes = {kind: jax.dtypes.canonicalize_dtype(kind) for kind in (float, complex)}

        def number(leaf: Any) -> Any:
            return np.asarray(leaf, dtypes[type(leaf)]) if type(leaf) in dtypes else leaf

        return tuple(
            a if i in self.nondiff else jax.tree_util.tree_map(number, a) for i, a in enumerate(args)
        )


def _unavailable(*args: Any, **kwargs: Any) -> Any:
    """Stand for a rule that cannot be run again, and must not be kept: JAX would call that a leak."""
    raise RuntimeError("it closes over a value that was there only while JAX traced it")


# ── recognising ──────────────────────────────────────────────────────────────────────────────────────────


def found(value: Any) -> CustomRule | None:
    """Recognise a rule that stands in a module."""
    is_rule = type(value).__name__ in KINDS and type(value).__module__ in (MODULE, NEWER)
    return CustomRule(value) if is_rule and "jax" in sys.modules else None


def named(value: Any) -> CustomRule | None:
    """Recognise a rule, behind `jax.jit` too."""
    rule = value
    while type(rule).__name__ == "PjitFunction":
        rule = rule.__wrapped__
    return None if found(rule) is None else CustomRule(rule, value)


def written(function: Any) -> Any:
    """Give what the user wrote: Equinox holds it, or a rule of JAX's that was made of it."""
    known = named(function)
    if known is None and type(function).__module__.startswith("equinox."):
        function = getattr(function, "fn", function)
        known = found(function)
    return function if known is None else known.user


# ── bypassing ────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def bypassed(keeps: Keeps | None = None) -> Iterator[Meeting]:
    """Run rules as their plain bodies, however deep in a function they are.

    Nothing is compiled meanwhile: a function that was traced with its rules has them in its trace, and one
    traced without them must not be kept.
    """
    import jax

    from pullback.hosts.jax import HOST

    def plain(call: Callable[..., Any]) -> Callable[..., Any]:
        def body_only(self: Any, *args: Any, **kwargs: Any) -> Any:
            native = CustomRule(self)
            if native.is_jax() or not is_bypassed(lambda: native):
                return call(self, *args, **kwargs)
            return native.body(*args, **kwargs)

        return body_only

    with collecting(HOST, keeps) as met, jax.disable_jit(), contextlib.ExitStack() as stack:
        for name in (MODULE, NEWER):
            for kind in _kinds_in(sys.modules.get(name)):
                stack.enter_context(patched(kind, __call__=plain(kind.__call__)))
        yield met


def _kinds_in(module: Any) -> list[Any]:
    """List the classes of rules that a module of JAX's defines."""
    kinds = (getattr(module, name, None) for name in KINDS)
    return [kind for kind in kinds if kind is not None and kind.__module__ == module.__name__]


# ── listening ────────────────────────────────────────────────────────────────────────────────────────────


def listeners(listener: Listener) -> dict[str, Listen]:
    """Say how to listen, by module."""
    rules = dict.fromkeys((MODULE, NEWER), lambda module: _listening(module, listener))
    return {**rules, pulled.TRANSPOSES: pulled.transposing}


@contextlib.contextmanager
def _listening(module: Any, listener: Listener) -> Iterator[None]:
    kinds = _kinds_in(module)
    resolve = module.resolve_kwargs

    @functools.wraps(resolve)
    def resolve_kwargs(fun: Any, args: Any, kwargs: Any) -> Any:
        caller = sys._getframe(1)
        rule = caller.f_locals.get("self") if caller.f_code.co_name == "__call__" else None
        given = resolve(fun, args, kwargs)
        if type(rule) in kinds:
            listener.called(lambda: CustomRule(rule), lambda: (CustomRule(rule).numbered(given), {}))
        return given

    def telling(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            listener.made(lambda: CustomRule(self))

        return made

    with contextlib.ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(patched(kind, __init__=telling(kind.__init__)))
        stack.enter_context(patched(module, resolve_kwargs=resolve_kwargs))
        stack.enter_context(pulled.listening(listener, module, CustomRule))
        yield
