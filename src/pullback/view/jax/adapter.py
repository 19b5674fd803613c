"""JAX callables as subjects of the checker.

A pullback rule, a `jax.custom_vjp`, `jax.custom_jvp` or `jax.custom_gradient` function, a module that is a
pytree, a plain function. The arrays of a module are inputs too. The checker's complex cotangents are dL/d
conj(z); JAX's are the conjugates, and are turned here. A copy in float64 is run with 64 bits allowed for that
call alone: the configuration of the program is never touched.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from pullback.clock import wait
from pullback.hosts.jax import HOST
from pullback.view import arguments
from pullback.view.adapter import Adapter, itself
from pullback.view.framework import Pull, Run, Vjp
from pullback.view.jax import leaves, native
from pullback.view.jax.program import Program, Steps, callbacks, placed, quick
from pullback.view.jax.words import JaxWords
from pullback.view.rules import How
from pullback.view.subject import Array, Arrays, Cotangents, Forward, Pullback, Subject


class JaxAdapter(Adapter):
    """Run a callable of JAX on arrays."""

    host = HOST
    natives = native
    words = JaxWords()
    builtin = ("jax", "equinox", "flax", "optax", "keras")

    def __init__(self, *given: Any, **named: Any) -> None:
        self.by_steps = self.steps = Steps()
        self.programs: dict[How, Program] = {}
        self.whole: dict[tuple[str, Run], Any] = {}  # derivatives as programs
        super().__init__(*given, **named)

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
        if hasattr(tensor, "is_ready"):
            wait(tensor.is_ready)  # NumPy would wait where nothing can stop it
        return np.asarray(tensor)

    def converted(self, tensor: Any, dtype: str) -> Any:
        return jax.device_put(np.asarray(tensor).astype(jnp.dtype(dtype)))

    def sources(self, inputs: Arrays) -> list[Any]:
        return self.constants(inputs)

    def constants(self, arrays: Arrays) -> list[Any]:
        return placed(arrays)

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
        return jax.tree_util.tree_unflatten(structure, parts)

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

    def program(self, how: How = itself) -> Program:
        """Give the function and its pullback as one program."""
        if how not in self.programs:
            run = self.run(how)
            linear = functools.partial(self.linear, run)
            known = self.original.programs.get(how) if isinstance(self.original, JaxAdapter) else None
            self.programs[how] = Program(run, linear, self.steps, plain=how is not itself, known=known)
        return self.programs[how]

    def as_program(self, pull: Pull) -> Pull:
        compiled = quick(pull)

        def run(sources: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            if self.program().is_compiled(sources):
                with contextlib.suppress(Exception):  # it says what is wrong when it is called as it stands
                    return list(compiled(sources, cotangents))
            return pull(sources, cotangents)

        return run

    # What a program is handed are the arrays themselves; in lists, as it was compiled.

    def forward_of(self, run: Run) -> Forward:
        def forward(inputs: Arrays) -> Arrays:
            with self.surroundings():
                return tuple(map(self.array, run(list(inputs))))

        return forward

    def pullback_of(self, vjp: Vjp) -> Pullback:
        def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
            with self.surroundings():
                return self.along(vjp(list(inputs), list(cotangents)), self.silent)

        return pullback

    def forward(self, how: How = itself) -> Forward:
        return self.forward_of(self.program(how).outputs)

    def pullback(self, how: How = itself) -> Pullback:
        return self.pullback_of(self.program(how).cotangents)

    def at_once(self, name: str, run: Run, sources: Sequence[Any], *given: Any) -> Any:
        """Compute a derivative as one program, where the function itself is one."""
        derivative = functools.partial(getattr(self, name), run)
        if not self.program().is_compiled(sources):
            return derivative(sources, *given)
        if (name, run) not in self.whole:
            self.whole[name, run] = quick(derivative)
        return self.whole[name, run](sources, *given)

    def second(
        self, run: Run, sources: Sequence[Any], cotangents: Sequence[Any], weights: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        by_input, by_cotangent = self.at_once("_second", run, sources, cotangents, weights)
        return by_input, by_cotangent

    def jvp(self, run: Run, sources: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        return list(self.at_once("_jvp", run, sources, tangents))

    def rows(self, run: Run, sources: Sequence[Any]) -> list[Sequence[Any]]:
        return list(self.at_once("_rows", run, sources))

    def _second(
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

    def _jvp(self, run: Run, sources: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        moving = self.among(sources)
        _, pushed = jax.jvp(self.moving(run, sources), (moving,), (self.among(tangents),))
        return list(pushed)

    def _rows(self, run: Run, sources: Sequence[Any]) -> list[Sequence[Any]]:
        outputs, pull = self.linear(run, sources)
        zeros = [jnp.zeros_like(o) for o in outputs]
        found: list[Sequence[Any]] = []
        for k, y in enumerate(outputs):
            basis = jnp.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape)
            rows = jax.vmap(lambda c, k=k: pull([*zeros[:k], c, *zeros[k + 1 :]]))(basis)
            found.append([g.reshape(y.shape + g.shape[1:]) for g in rows])
        return found

    def ran(self, pulled: bool) -> list[tuple[int, ...]]:
        with self.surroundings():
            sources = self.sources(self.inputs)
            lowered = self.program().lower(sources) if pulled else jax.eval_shape(self.run(), sources)
            return [output.shape for output in lowered]

    def tried(self, run: Run) -> None:
        sources = self.sources(self.inputs)
        try:
            jax.eval_shape(run, sources)
        except Exception:  # it looks at values
            run(sources)

    def compiled(self) -> Mapping[str, tuple[Run, Vjp]]:
        program = self.program()
        return {"jit": (program.compiled_outputs, program.compiled_cotangents)}

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
        return not callbacks(str(traced)) <= {"debug"}  # what a program prints is not used

    def values(self, run: Run, sources: Sequence[Any]) -> list[Any]:
        if run is self.run():
            program = self.program()
            outputs = program.outputs(sources)
            return [*outputs, *program.cotangents(sources, [np.ones_like(output) for output in outputs])]

        def values(sources: Sequence[Any]) -> list[Any]:
            outputs, pull = self.linear(run, sources)
            return [*outputs, *pull([jnp.ones_like(output) for output in outputs])]

        return list(quick(values)(sources))

    def exported(self) -> tuple[Run, Run, Sequence[Any]]:
        run, sources = self.run(), self.sources(self.inputs)
        saved = export.export(jax.jit(lambda *given: run(given)))(*sources).serialize(vjp_order=1)
        loaded = export.deserialize(saved)
        return run, lambda given: list(loaded.call(*given)), sources

    # ── rules ────────────────────────────────────────────────────────────────────────────────────────────

    def written_name(self) -> str:
        routine = inspect.isroutine(inspect.unwrap(self.function)) and self.name.isidentifier()
        return self.name if routine else super().written_name()

    def without(self, direct: Pullback | None) -> frozenset[int]:
        """Give the inputs for which the rule gives None: JAX makes zeros of that, so it is called by hand."""
        if direct is None:
            return frozenset()
        try:
            found = direct(self.inputs, self.forward()(self.inputs))
        except Exception:  # the contract probe says so
            return frozenset()
        return frozenset(k for k, g in enumerate(found) if g is None)

    def subject(self) -> Subject:
        made = super().subject()
        known = self.original
        self.silent = self.without(made.direct_pullback) if known is None else known.silent
        # A rule around a function of JAX's is the user's; the rules of JAX itself were not met.
        return replace(
            made,
            is_builtin=made.is_builtin and not made.is_rule,
            differentiated=None if self.native is None else self.forward_of(self.program().differentiated),
        )


ADAPTER = JaxAdapter
