"""Running an operation so that every transformation of JAX meets its rule.

A call is one `call_p`. Differentiated, it runs the body on the primals, and hands the residuals to a
`linear_p`. What is bound is one of two programs.

_Call     the call as it stands: the body runs each time it is wanted.
_Frozen   body and pullback, traced at once, in which a traced array that they close over is an input, while
          it lives. So is every call that is differentiated in a program: one trace does for both.

Invariant: outputs depend on the inputs by the rule at every order, and residuals by the body.
"""

from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
from jax.core import Tracer, eval_context, eval_jaxpr

from pullback.hosts.jax import captures, residuals, tracing, varying
from pullback.hosts.jax.call_p import Program, call_p
from pullback.hosts.jax.derivative import Derivative
from pullback.hosts.jax.linear_p import moves, with_tangents
from pullback.hosts.operation import Operation

_freezing: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar("freezing", default=frozenset())


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation so that every transformation of JAX meets its rule."""
    traced = [tensor for tensor in tensors if isinstance(tensor, Tracer)]
    if not traced:
        outputs = operation.forward(tensors)[0]
        captured = any(isinstance(output, Tracer) for output in outputs)
        return _freeze(operation, tensors) if captured else outputs
    differentiated = [tensor for tensor in traced if hasattr(tensor, "primal")]
    if len(differentiated) == len(traced) and all(map(_is_number_inside, traced)):
        if captures.named(operation):
            return _freeze(operation, tensors)
        try:
            return list(call_p.bind(*tensors, name=operation.name, program=_Call(operation)))
        except jax.errors.UnexpectedTracerError:  # the body reached a traced array
            return _freeze(operation, tensors)
    if differentiated or captures.named(operation):  # in a program the rule is asked at once
        return _freeze(operation, tensors)
    call, tensors = _Call(operation), varying.aligned(tensors)
    call.traced = tracing.trace(call.evaluate, list(map(jax.typeof, tensors)), operation.name)
    if any(isinstance(const, Tracer) for const in call.traced.consts):
        return _freeze(operation, tensors)
    return list(call_p.bind(*tensors, name=operation.name, program=call))


def _is_number_inside(tensor: Any) -> bool:
    """Tell whether a value is known when derivatives and batches that are under way are put aside."""
    while True:
        if hasattr(tensor, "primal"):
            tensor = tensor.primal
        elif hasattr(tensor, "batch_dim"):
            tensor = tensor.val
        else:
            return not isinstance(tensor, Tracer)


@dataclasses.dataclass(eq=False)
class _Call(Program):
    """A call as it stands."""

    operation: Operation

    def evaluate(self, operands: Sequence[Any]) -> list[Any]:
        return self.operation.forward(list(operands))[0]

    def differentiate(self, primals: list[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        operation = self.operation
        if any(isinstance(primal, Tracer) for primal in primals):
            outputs, pull = operation.forward(primals)
            kept, derivative = residuals.traced(operation, primals, outputs, pull)
        else:
            with eval_context():  # JAX runs compiled code directly there, and by a long way inside a trace
                outputs, pull = operation.forward(primals)
            kept, derivative = residuals.eager(operation, primals, outputs, pull)
        return with_tangents(derivative, outputs, kept, primals, tangents)


# ── body and pullback at once ────────────────────────────────────────────────────────────────────────────


def _freeze(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Trace body and pullback at once; make what they close over inputs."""
    tensors = varying.aligned(tensors)
    identity, freezing = id(operation.identity), _freezing.get()
    if identity in freezing:  # a `grad` that calls its own rule
        return list(call_p.bind(*tensors, name=operation.name, program=_Call(operation)))
    unknown = [i for i, tensor in enumerate(tensors) if isinstance(tensor, Tracer)]
    types = [jax.typeof(tensors[i]) for i in unknown]
    both = _Both(operation, tensors, unknown)
    token = _freezing.set(freezing | {identity})
    try:
        jaxpr, consts, _ = tracing.trace(both, types, operation.name)
    finally:
        _freezing.reset(token)
    captured: dict[int, str | None] = {}
    operands, known = list(tensors), list(consts)
    for i, const in enumerate(consts):
        if isinstance(const, Tracer):
            stopped = captures.is_stopped(jaxpr, i, both.count, both.derivative.takers)
            captured[i] = None if stopped else captures.name_of(operation, const)
            operands.append(const)
            known[i] = None
    frozen = _Frozen(jaxpr, known, captured, unknown, len(tensors), both.count, both.derivative)
    return list(call_p.bind(*operands, name=operation.name, program=frozen))


@dataclasses.dataclass(eq=False)
class _Both:
    """The function that is frozen: outputs and residuals. It keeps what is no array of its last run."""

    operation: Operation
    tensors: list[Any]
    unknown: list[int]  # the tensors that are traced
    count: int = 0  # of the outputs
    derivative: Any = None

    def __call__(self, given: Sequence[Any]) -> list[Any]:
        full = list(self.tensors)
        for i, tensor in zip(self.unknown, given):
            full[i] = tensor
        outputs, pull = self.operation.forward(full)
        kept, self.derivative = residuals.traced(self.operation, full, outputs, pull)
        self.count = len(outputs)
        return [*outputs, *kept]


@dataclasses.dataclass(eq=False)
class _Frozen(Program):
    """A call whose body and pullback are programs. It keeps no traced array alive, and no operation.

    Its operands are the inputs, and behind them the traced arrays that body and pullback close over.
    """

    jaxpr: Any
    consts: list[Any]  # None in the place of a traced array
    captured: dict[int, str | None]  # these places: how the body calls each, None if it cuts it off
    unknown: list[int]  # the inputs that were not known when it was traced
    inputs: int  # how many there are
    count: int  # of the outputs
    derivative: Derivative

    def evaluate(self, operands: Sequence[Any]) -> list[Any]:
        return self._results(operands)[: self.count]

    def differentiate(self, primals: list[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        inputs, count, derivative = self.inputs, self.count, self.derivative
        for name, primal, tangent in zip(self.captured.values(), primals[inputs:], tangents[inputs:]):
            if name is not None and moves(tangent):
                raise captures.refuse(derivative.operation, name, primal.shape)
        results = self._results(primals)
        return with_tangents(
            derivative, results[:count], results[count:], primals[:inputs], tangents[:inputs]
        )

    def _results(self, operands: Sequence[Any]) -> list[Any]:
        """Give the outputs and the residuals."""
        consts = list(self.consts)
        for i, operand in zip(self.captured, operands[self.inputs :]):
            consts[i] = operand
        return list(eval_jaxpr(self.jaxpr, (), *consts, *[operands[i] for i in self.unknown]))
