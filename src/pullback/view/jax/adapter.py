"""JAX callables as subjects of the checker.

A pullback rule, a `jax.custom_vjp`, `jax.custom_jvp` or `jax.custom_gradient` function, a module that is a
pytree, a plain function. The arrays of a module are inputs too. The checker's complex cotangents are dL/d
conj(z); JAX's are the conjugates, and are turned here. A copy in float64 is run with 64 bits allowed for that
call alone: the configuration of the program is never touched.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pullback import tree
from pullback.hosts.base import Met
from pullback.hosts.jax import HOST
from pullback.view import arguments
from pullback.view.adapter import Adapter, Run, Vjp
from pullback.view.jax import bypass, leaves
from pullback.view.jax.export import survives_export
from pullback.view.jax.words import JaxWords
from pullback.view.subject import Array, Arrays, Subject


class JaxAdapter(Adapter):
    """Run a callable of JAX on arrays."""

    host = HOST
    words = JaxWords()
    builtin = ("jax", "equinox", "flax", "optax", "keras")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        dtype: str | None = None,
    ) -> None:
        self.fixed = _nondiff_leaves(function, args, kwargs)
        super().__init__(function, args, kwargs, dtype)

    def surroundings(self) -> contextlib.AbstractContextManager[Any]:
        wide = self.dtype == "float64" or any(map(leaves.is_wide, self.arguments.inputs))
        return leaves.wide() if wide else contextlib.nullcontext()

    def is_input(self, leaf: Any) -> bool:
        if any(leaf is fixed for fixed in self.fixed):
            return False
        if isinstance(leaf, jax.Array):
            return leaves.is_array(leaf)
        return arguments.is_array(leaf) or hasattr(leaf, "__jax_array__")

    def tensor(self, leaf: Any, name: str = "an output") -> jax.Array:
        return jnp.asarray(leaf)

    def output(self, leaf: Any) -> jax.Array | None:
        known = isinstance(leaf, (int, float, complex)) or self.is_input(leaf)
        return jnp.asarray(leaf) if known else None

    def array(self, tensor: Any) -> Array:
        return np.asarray(tensor)

    def cast(self, tensor: Any) -> jax.Array:
        return leaves.precision(self.dtype, tensor)

    def sources(self, inputs: Arrays) -> list[Any]:
        return self.constants(inputs)

    def constants(self, arrays: Arrays) -> list[Any]:
        return [jnp.asarray(a) for a in arrays]

    # ── modules ──────────────────────────────────────────────────────────────────────────────────────────

    def weights(self) -> dict[str, Any]:
        self.places: list[int] = []
        if jax.tree_util.all_leaves([self.function]):
            return super().weights()
        found, _ = jax.tree_util.tree_flatten_with_path(self.function)
        self.places = [i for i, (_, leaf) in enumerate(found) if leaves.is_inexact(leaf)]
        return {jax.tree_util.keystr(found[i][0]).lstrip("."): found[i][1] for i in self.places}

    def bound(self, parameters: Sequence[Any]) -> Callable[..., Any]:
        if not self.places:
            return super().bound(parameters)
        parts, structure = jax.tree_util.tree_flatten(self.function)
        for place, value in zip(self.places, parameters):
            parts[place] = value
        module: Callable[..., Any] = jax.tree_util.tree_unflatten(structure, parts)
        return module

    def written_parameters(self) -> list[str]:
        return [str(place) for place in self.places] or super().written_parameters()

    # ── derivatives ──────────────────────────────────────────────────────────────────────────────────────

    def moving(self, run: Run, sources: Sequence[Any]) -> Callable[[list[Any]], list[Any]]:
        """Give the function of the differentiable sources alone."""

        def function(values: list[Any]) -> list[Any]:
            rest = iter(values)
            return run([next(rest) if d else s for s, d in zip(sources, self.differentiable)])

        return function

    def linear(self, run: Run, sources: Sequence[Any]) -> tuple[list[Any], Callable[..., list[Any]]]:
        """Give outputs and pullback, in the checker's convention of complex cotangents."""
        outputs, pull = jax.vjp(self.moving(run, sources), self.among(sources))

        def pullback(cotangents: Sequence[Any]) -> list[Any]:
            (found,) = pull([HOST.conjugate(c) for c in cotangents])
            return [HOST.conjugate(g) for g in found]

        return outputs, pullback

    def vjp(self, run: Run, sources: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return self.linear(run, sources)[1](cotangents)

    def second(
        self, run: Run, sources: Sequence[Any], cotangents: Sequence[Any], weights: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        def total(moving: list[Any], cots: list[Any]) -> Any:
            rest = iter(moving)
            here = [next(rest) if d else s for s, d in zip(sources, self.differentiable)]
            grads = self.vjp(run, here, cots)
            terms = [
                jnp.real(jnp.sum(jnp.conj(w) * g)).astype(jnp.result_type(float))
                for w, g in zip(weights, grads)
                if w is not None
            ]
            return sum(terms, start=jnp.zeros(()))

        found = jax.grad(total, argnums=(0, 1))(self.among(sources), list(cotangents))
        by_input, by_cotangent = ([HOST.conjugate(g) for g in part] for part in found)
        return by_input, by_cotangent

    def jvp(self, run: Run, sources: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        moving = self.among(sources)
        _, pushed = jax.jvp(self.moving(run, sources), (moving,), (self.among(tangents),))
        return list(pushed)

    def rows(self, run: Run, sources: Sequence[Any]) -> list[Sequence[Any]]:
        outputs, pull = self.linear(run, sources)
        zeros = [jnp.zeros_like(o) for o in outputs]
        found: list[Sequence[Any]] = []
        for k, y in enumerate(outputs):
            basis = jnp.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape)
            rows = jax.vmap(lambda c, k=k: pull([*zeros[:k], c, *zeros[k + 1 :]]))(basis)
            found.append([g.reshape(y.shape + g.shape[1:]) for g in rows])
        return found

    def compiled(self) -> Mapping[str, tuple[Run, Vjp]]:
        run = self.run()
        return {"jit": (jax.jit(run), jax.jit(lambda sources, cots: self.vjp(run, sources, cots)))}

    # ── what the host can see ────────────────────────────────────────────────────────────────────────────

    def opaque(self) -> bool:
        """Look for callbacks into Python in the traced gradient."""
        run = self.run()
        try:
            with self.surroundings():
                sources = self.sources(self.inputs)
                traced = jax.make_jaxpr(lambda s: self.vjp(run, s, run(s)))(sources)
        except Exception:  # what cannot be traced is not opaque for that reason
            return False
        return re.search(r"\b(pure|io)_callback\[", str(traced)) is not None

    def exports(self) -> bool:
        with self.surroundings():
            return survives_export(self.run(), self.vjp, self.sources(self.inputs))

    # ── rules ────────────────────────────────────────────────────────────────────────────────────────────

    def bypassed(self) -> contextlib.AbstractContextManager[list[Met]]:
        return bypass.bypassed()

    def native(self) -> Any:
        """Give JAX's own rule, behind `jax.jit` too; None where the function is none."""
        function = self.function
        while type(function).__name__ == "PjitFunction":
            function = function.__wrapped__  # type: ignore[attr-defined]
        return function if isinstance(function, (jax.custom_vjp, jax.custom_jvp)) else None

    def definition(self) -> Any:
        native = self.native()
        if native is not None:
            return bypass.written(native)
        filtered = type(self.function).__module__.startswith("equinox.")  # as by eqx.filter_custom_vjp
        inner = getattr(self.function, "fn", self.function) if filtered else self.function
        return bypass.written(inner) if isinstance(inner, jax.custom_jvp) else inner

    def written_name(self) -> str:
        named = self.native() is not None or inspect.isroutine(inspect.unwrap(self.function))
        return self.name if named and self.name.isidentifier() else "f"

    def native_pullback(self) -> Callable[..., Any] | None:
        rule: Any = self.native()
        if (
            not isinstance(self.native(), jax.custom_vjp)
            or not rule.bwd
            or getattr(rule, "symbolic_zeros", False)
        ):
            return None

        def by_hand(args: Sequence[Any], kwargs: dict[str, Any], cotangents: Sequence[Any]) -> list[Any]:
            bound = inspect.signature(rule.fun).bind(*args, **kwargs)
            names = list(bound.arguments)
            bound.apply_defaults()
            values = bound.args
            outputs, residuals = rule.fwd(*values)
            leaves, structure = jax.tree_util.tree_flatten(outputs)
            rest = iter(cotangents)
            filled = [
                HOST.conjugate(next(rest))
                if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)
                else np.zeros(jnp.shape(leaf), jax.dtypes.float0)
                for leaf in leaves
            ]
            fixed = [values[i] for i in rule.nondiff_argnums]
            given = rule.bwd(*fixed, residuals, jax.tree_util.tree_unflatten(structure, filled))
            moving = [i for i in range(len(values)) if i not in rule.nondiff_argnums]
            if not isinstance(given, (tuple, list)) or len(given) != len(moving):
                raise ValueError("the cotangents cannot be matched to the inputs")
            by_place = dict(zip(moving, given))
            order = [*range(len(args)), *(names.index(key) for key in tree.keys_of(kwargs))]
            found: list[Any] = []
            for place in order:
                flat = tree.match(tree.flatten(values[place])[1], by_place.get(place))
                if flat is None:
                    raise ValueError("the cotangents cannot be matched to the inputs")
                found += [None if g is None else HOST.conjugate(g) for g in flat]
            return [found[i] for i in self.arguments.slots]

        return by_hand

    def subject(self) -> Subject:
        direct = self.direct()
        if direct is not None:
            # JAX makes zeros of a None: only the rule called by hand can tell that one was meant.
            try:
                found = direct(self.inputs, self.forward()(self.inputs))
            except Exception:  # the contract probe says so
                found = self.inputs
            self.silent = frozenset(k for k, g in enumerate(found) if g is None)
        made = super().subject()
        # A rule around a function of JAX's is the user's; the rules of JAX itself were not met.
        return replace(made, is_builtin=made.is_builtin and not made.is_rule)


def _nondiff_leaves(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """List the arrays in `nondiff_argnums` of a rule of JAX's: it differentiates past them."""
    places = getattr(function, "nondiff_argnums", ())
    if not places or not isinstance(function, (jax.custom_vjp, jax.custom_jvp)):
        return []
    values = inspect.signature(function.fun).bind(*args, **kwargs).args
    return tree.flatten([values[i] for i in places if i < len(values)])[0]


ADAPTER = JaxAdapter
