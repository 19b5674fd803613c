"""The primitive `call_p`: one call of a rule, as an operation of JAX's with a derivative of its own.

It is a primitive, and no `jax.custom_jvp`, because that one loses its rule inside the loops that JAX takes
apart for reverse mode: a second derivative that goes through it is then that of the body.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
from jax.core import Tracer, eval_jaxpr
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir

from pullback.hosts.jax.batched import front, fronts, over_axis, register
from pullback.hosts.jax.derivative import array
from pullback.hosts.jax.linear_p import moves, zero_of
from pullback.hosts.jax.tracing import Traced, trace

call_p = Primitive("pullback_call")
call_p.multiple_results = True


@dataclasses.dataclass(eq=False)
class Program:
    """What a call computes, and how it is differentiated. JAX's caches hold what can be called weakly."""

    traced: Traced | None = dataclasses.field(default=None, kw_only=True)  # of the outputs

    def evaluate(self, operands: Sequence[Any]) -> list[Any]:
        """Give the outputs."""
        raise NotImplementedError

    def differentiate(self, primals: list[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Give the outputs and their tangents; a tangent may be a symbolic zero."""
        raise NotImplementedError

    def of_types(self, types: Sequence[Any], name: str) -> Traced:
        """Give the jaxpr of the outputs, traced once."""
        if self.traced is None:
            traced = trace(self.evaluate, types, name)
            if any(isinstance(const, Tracer) for const in traced.consts):
                raise jax.errors.UnexpectedTracerError(f"{name} closes over a traced array")
            self.traced = traced
        return self.traced

    def __call__(self, operands: Sequence[Any]) -> list[Any]:
        """Run what was traced; the user's code if nothing was."""
        if self.traced is None:
            return list(self.evaluate(operands))
        return list(eval_jaxpr(self.traced.jaxpr, (), *self.traced.consts, *operands))


@call_p.def_impl
def _call_impl(*operands: Any, name: str, program: Program) -> list[Any]:
    return program(operands)


@call_p.def_effectful_abstract_eval
def _call_abstract_eval(*types: Any, name: str, program: Program) -> Any:
    jaxpr = program.of_types(types, name).jaxpr
    return [variable.aval for variable in jaxpr.outvars], jaxpr.effects


def _call_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str, program: Program) -> Any:
    return program.differentiate(list(map(array, primals)), tangents)


def _call_batch(axis: Any, operands: Any, dims: Any, *, name: str, program: Program) -> list[Any]:
    moved, axes = fronts(axis, operands, dims)
    return list(call_p.bind(*moved, name=name, program=_Batch(program, axis, axes)))


@dataclasses.dataclass(eq=False)
class _Batch(Program):
    """A batch of calls; the rule is asked for each."""

    one: Program
    axis: Any
    axes: list[int | None]

    def evaluate(self, operands: Sequence[Any]) -> list[Any]:
        return list(over_axis(self.axis, self.one, [self.axes])(list(operands)))

    def differentiate(self, primals: list[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        given = [front(self.axis, t, dim) if moves(t) else None for t, dim in zip(tangents, self.axes)]
        outputs, moved = over_axis(self.axis, self._differentiate_one, [self.axes, 0])(primals, given)
        return outputs, [zero_of(y) if tangent is None else tangent for y, tangent in zip(outputs, moved)]

    def _differentiate_one(self, primals: Any, tangents: Any) -> Any:
        full = [zero_of(x) if tangent is None else tangent for x, tangent in zip(primals, tangents)]
        outputs, moved = self.one.differentiate(primals, full)
        return outputs, [None if type(tangent) is ad.Zero else tangent for tangent in moved]


ad.primitive_jvps[call_p] = _call_jvp
register(call_p, _call_batch)
mlir.register_lowering(call_p, mlir.lower_fun(_call_impl, multiple_results=True))
