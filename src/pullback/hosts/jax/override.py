"""Overriding gradients: a function is traced, and its jaxpr run again with rules in the places of a kind.

Loops, branches and checkpoints that hold a place are built again around it; functions that JAX calls are run
inline. Everything else is bound as it stands. A rule of this library keeps its gradient, whatever its body is
made of.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from pullback.errors import OverrideError
from pullback.hosts.jax import kinds, tracing
from pullback.hosts.jax.programs import bind, walk
from pullback.hosts.operation import Derived, Pullback
from pullback.hosts.overrides import Gradients
from pullback.rule import reach

_ARRAY = object()  # stands for an array among outputs: none that was traced is kept


def override(function: Any, gradients: Gradients) -> Any:
    """Give a function again, with other gradients by kind."""
    if function is None:
        raise OverrideError.about(
            "override",
            found="gradients alone, for a context",
            expected="a function and the gradients by kind",
            why="JAX tells nobody of the operations that run: only a function can be traced and run again",
            fix="f = pb.override(f, {…})",
        )
    return Overridden(function, gradients)


class Overridden:
    """A function with other gradients inside. `replaced` counts those of the last call."""

    def __init__(self, function: Any, gradients: Gradients) -> None:
        self.original = function
        self.replaced: dict[str, int] = {}
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self._make = gradients.make
        self._check = gradients.check
        self._kinds = {kinds.in_jaxpr(kind): (kinds.name(kind), g) for kind, g in gradients.by_kind.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        arrays = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
        outputs: list[Any] = []
        shape: list[Any] = []

        def flat(*given: Any) -> list[Any]:
            full = list(leaves)
            for i, array in zip(arrays, given):
                full[i] = array
            args, kwargs = jax.tree.unflatten(structure, full)
            found, tree = jax.tree.flatten(self.original(*args, **kwargs))
            shape[:] = [tree]
            outputs[:] = [_ARRAY if _is_array(output) else output for output in found]
            return [output for output in found if _is_array(output)]

        given = [leaves[i] for i in arrays]
        program = jax.make_jaxpr(flat)(*given)
        self._count(program.jaxpr)
        results = iter(walk(program.jaxpr, [*program.consts, *given], self._equation))
        return jax.tree.unflatten(shape[0], [next(results) if x is _ARRAY else x for x in outputs])

    def _count(self, jaxpr: Any) -> None:
        self.replaced = {name: 0 for name, _ in self._kinds.values()}
        seen: list[str] = []
        for eqn in self._met(jaxpr):
            seen.append(kinds.names(eqn)[0])
            kind = self._kind(eqn)
            if kind is not None:
                self.replaced[self._kinds[kind][0]] += 1
        self._check(self.replaced, seen, self.__name__)

    def _met(self, jaxpr: Any) -> Iterator[Any]:
        """List the equations that a run meets: what is inside a place is not met."""
        for eqn in jaxpr.eqns:
            yield eqn
            if self._kind(eqn) is None and not kinds.is_ours(eqn):
                for inner in kinds.subjaxprs(eqn):
                    yield from self._met(inner)

    def _kind(self, eqn: Any) -> str | None:
        return next((name for name in kinds.names(eqn) if name in self._kinds), None)

    def _holds(self, jaxpr: Any) -> bool:
        return any(self._kind(eqn) is not None for eqn in self._met(jaxpr))

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────

    def _equation(self, eqn: Any, values: list[Any]) -> list[Any]:
        kind = self._kind(eqn)
        if kind is not None:
            return self._place(eqn, values, kind)
        if kinds.is_ours(eqn) or not any(map(self._holds, kinds.subjaxprs(eqn))):
            return bind(eqn, values)
        name = eqn.primitive.name
        if name in kinds.CALLS:
            return self._of_program(kinds.function(eqn))(*values)
        rebuild = {"checkpoint": self._checkpoint, "remat2": self._checkpoint, "cond": self._cond,
                   "scan": self._scan, "while": self._while}.get(name)  # fmt: skip
        if rebuild is None:
            raise OverrideError.about(
                self.__name__,
                found=f"a place stands inside a {name}",
                expected="places in plain operations, jitted functions, loops, branches and checkpoints",
                fix=f"override the function inside the {name}",
            )
        return rebuild(eqn.params, values)

    def _of_program(self, program: Any) -> Callable[..., list[Any]]:
        jaxpr, consts = getattr(program, "jaxpr", program), getattr(program, "consts", ())
        return lambda *values: walk(jaxpr, [*consts, *values], self._equation)

    def _checkpoint(self, params: Any, values: list[Any]) -> list[Any]:
        inner = self._of_program(params["jaxpr"])
        policy, prevent = params["policy"], params["prevent_cse"]
        return list(jax.checkpoint(inner, policy=policy, prevent_cse=prevent)(*values))

    def _cond(self, params: Any, values: list[Any]) -> list[Any]:
        branches = [self._of_program(branch) for branch in params["branches"]]
        return list(jax.lax.switch(values[0], branches, *values[1:]))

    def _scan(self, params: Any, values: list[Any]) -> list[Any]:
        step, (fixed, carried) = self._of_program(params["jaxpr"]), tracing.loop_counts(params)
        consts, start, rows = values[:fixed], values[fixed : fixed + carried], values[fixed + carried :]

        def body(carry: Any, row: Any) -> Any:
            results = step(*consts, *carry, *row)
            return results[:carried], results[carried:]

        kept = {name: params[name] for name in ("length", "reverse", "unroll")}
        end, stacked = jax.lax.scan(body, start, rows, **kept)
        return [*end, *stacked]

    def _while(self, params: Any, values: list[Any]) -> list[Any]:
        test, step = self._of_program(params["cond_jaxpr"]), self._of_program(params["body_jaxpr"])
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        of_test, of_step, start = values[:first], values[first:second], values[second:]
        return list(
            jax.lax.while_loop(
                lambda carry: test(*of_test, *carry)[0], lambda carry: step(*of_step, *carry), start
            )
        )

    def _place(self, eqn: Any, values: list[Any], kind: str) -> list[Any]:
        places = [i for i, atom in enumerate(eqn.invars) if not isinstance(atom, Literal)]
        if not places:
            return bind(eqn, values)

        literals = [atom.val if isinstance(atom, Literal) else None for atom in eqn.invars]

        def run(tensors: Sequence[Any]) -> list[Any]:
            given = list(literals)
            for i, tensor in zip(places, tensors):
                given[i] = tensor
            return bind(eqn, given)

        name, gradient = self._kinds[kind]
        tensors = [jax.numpy.asarray(values[i]) for i in places]
        operation = Replaced(self._make, name, kinds.input_names(eqn, places), tensors, gradient, run)
        return operation.host.apply(operation, tensors)


def _is_array(value: Any) -> bool:
    return isinstance(value, (jax.Array, np.ndarray, np.generic))


class Replaced(Derived):
    """The operation of one place: the equation itself, with the user's gradient."""

    def __init__(
        self,
        make: Callable[..., Any],
        kind: str,
        names: Sequence[str],
        tensors: Sequence[Any],
        gradient: Callable[..., Any],
        run: Callable[[Sequence[Any]], list[Any]],
    ) -> None:
        super().__init__(make(kind, names, tensors, gradient))
        self.name = kind
        self.identity = getattr(gradient, "__code__", gradient)
        self._make = lambda given: make(kind, names, given, gradient)
        self._gradient = gradient
        self._evaluate = run

    def forward(self, tensors: Sequence[Any]) -> tuple[list[Any], Pullback]:
        outputs = self._evaluate(tensors)
        occurrence = self._make(list(tensors))
        pull: Pullback = occurrence.ran(outputs)
        if "output" in inspect.signature(self._gradient).parameters:
            # their derivative is the one that is being given here
            occurrence.outputs = _Outputs(self, tensors)
        return outputs, pull

    def captured(self) -> Iterator[tuple[str, Any]]:
        return reach(self._gradient)


class _Outputs(Sequence[Any]):
    """The outputs of a place, computed as an operation of their own when they are asked for.

    Each time anew: who asks may be traced, and what is computed there belongs to that trace.
    """

    def __init__(self, operation: Replaced, tensors: Sequence[Any]) -> None:
        self._operation = operation
        self._tensors = list(tensors)

    def _values(self) -> list[Any]:
        return self._operation.host.apply(self._operation, self._tensors)

    def __getitem__(self, index: Any) -> Any:
        return self._values()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())
