"""The primitive `called`: one call of a rule, as an operation of JAX's with a derivative of its own.

It is a primitive, and no `jax.custom_jvp`, because that one loses its rule inside the loops that JAX takes
apart for reverse mode: a second derivative that goes through it is then that of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from pullback.hosts.jax import pushed, tracing

Differentiate = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]

primitive = Primitive("pullback_called")
primitive.multiple_results = True


class Program:
    """What a call computes, and how it is differentiated.

    `evaluate` gives the outputs; `differentiate` takes primals and tangents, which may be symbolic zeros, to
    the outputs and their tangents.
    """

    def __init__(
        self, evaluate: Callable[..., list[Any]], differentiate: Differentiate, traced: Any = None
    ) -> None:
        self.evaluate = evaluate
        self.differentiate = differentiate
        self._traced = traced

    def traced(self, types: Sequence[Any], name: str) -> Any:
        """Give the jaxpr of the outputs, traced once."""
        if self._traced is None:
            traced = tracing.trace(self.evaluate, types, name)
            if any(isinstance(const, Tracer) for const in traced.consts):
                raise jax.errors.UnexpectedTracerError(f"{name} closes over a traced array")
            self._traced = traced
        return self._traced

    def __call__(self, *operands: Any) -> list[Any]:
        """Run what was traced; the user's code if nothing was."""
        if self._traced is None:
            return list(self.evaluate(*operands))
        return tracing.run(self._traced.jaxpr, self._traced.consts, operands)


def call(
    name: str,
    operands: Sequence[Any],
    evaluate: Callable[..., list[Any]],
    differentiate: Differentiate,
    traced: Any = None,
) -> list[Any]:
    """Call a rule by its name, as it then stands in a jaxpr; `traced` is the jaxpr of `evaluate`."""
    program = Program(evaluate, differentiate, traced)
    outputs: list[Any] = primitive.bind(*operands, name=name, program=program)
    return outputs


@primitive.def_impl
def _evaluate(*operands: Any, name: str, program: Program) -> list[Any]:
    return program(*operands)


@primitive.def_effectful_abstract_eval
def _types(*types: Any, name: str, program: Program) -> Any:
    jaxpr = program.traced(types, name).jaxpr
    return [variable.aval for variable in jaxpr.outvars], jaxpr.effects


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str, program: Program) -> Any:
    return program.differentiate(primals, tangents)


def _batch(axis: Any, operands: Sequence[Any], places: Sequence[Any], *, name: str, program: Program) -> Any:
    """Call a batch of runs; the rule is asked for each."""
    if all(place is None for place in places):
        outputs = primitive.bind(*operands, name=name, program=program)
        return outputs, [None] * len(outputs)
    axes = [None if place is None else 0 for place in places]
    moved = [x if d is None else pushed.front(axis, x, d) for x, d in zip(operands, places)]

    def evaluate(*operands: Any) -> list[Any]:
        return pushed.over_axis(axis, lambda given: program(*given), [axes])(list(operands))

    def differentiate(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        moving = [i for i, tangent in enumerate(tangents) if pushed.moves(tangent)]
        known: list[Any] = []

        def one(primals: Any, moved: Any) -> Any:
            full = [ad.Zero(pushed.tangent_type(primal)) for primal in primals]
            for i, tangent in zip(moving, moved):
                full[i] = tangent
            outputs, results = program.differentiate(primals, full)
            known[:] = [not pushed.is_zero(result) for result in results]
            return outputs, [result for result in results if not pushed.is_zero(result)]

        given = [tangents[i] if axes[i] == 0 else pushed.front(axis, tangents[i], None) for i in moving]
        outputs, results = pushed.over_axis(axis, one, [axes, 0])(list(primals), given)
        rest = iter(results)
        return outputs, [
            next(rest) if nonzero else ad.Zero(pushed.tangent_type(output))
            for output, nonzero in zip(outputs, known)
        ]

    outputs = call(name, moved, evaluate, differentiate)
    return outputs, [0] * len(outputs)


ad.primitive_jvps[primitive] = _jvp
batching.fancy_primitive_batchers[primitive] = _batch
mlir.register_lowering(primitive, mlir.lower_fun(_evaluate, multiple_results=True))
