"""Giving an operation its own derivative.

A call is the primitive of `called.py`. Differentiated, it runs the body on the primals, and hands what `grad`
closes over, the residuals, to the primitive of `pushed.py`. Three ways lead there.

eager    the primals are numbers. The pullback keeps what it closes over, and nothing is traced.
traced   the pullback is traced to a jaxpr, so that its residuals are values that JAX sees: it may put
         them through a loop, or differentiate them.
frozen   body and pullback are traced at once, and a traced array that they close over becomes an input,
         while it lives. So is every call that is differentiated in a program: one trace does for both.

Invariant: outputs depend on the inputs by the rule at every order, and residuals by the body.
"""

from __future__ import annotations

import contextvars
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer, eval_context

from pullback.hosts import refusals
from pullback.hosts.jax import called, captures, forward, owned, pushed, tracing, varying
from pullback.hosts.jax.pushed import Derivative
from pullback.hosts.operation import Cotangents, Operation, Pullback, filled

_freezing: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar("freezing", default=frozenset())


class _Run(NamedTuple):
    """One run of a body: what it returned, and what its derivative needs."""

    outputs: list[Any]
    residuals: list[Any]
    derivative: Derivative


def is_traced(value: Any) -> bool:
    """Tell whether a value is known to JAX only as a place in a program."""
    return isinstance(value, Tracer)


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation so that every transformation of JAX meets its rule."""
    traced = [tensor for tensor in tensors if isinstance(tensor, Tracer)]
    if not traced:
        outputs = operation.forward(tensors)[0]
        return _frozen(operation, tensors) if any(map(is_traced, outputs)) else outputs
    if captures.named(operation):
        return _frozen(operation, varying.aligned(tensors))
    differentiated = [tensor for tensor in traced if hasattr(tensor, "primal")]
    if len(differentiated) == len(traced) and not any(map(is_traced, map(_innermost, traced))):
        try:
            return _call(operation, tensors)
        except jax.errors.UnexpectedTracerError:  # the body reached a traced array
            return _frozen(operation, tensors)
    tensors = varying.aligned(tensors)
    if differentiated:  # the rule is asked at once
        return _frozen(operation, tensors)
    values = tracing.trace(_outputs_of(operation), list(map(jax.typeof, tensors)), operation.name)
    if any(map(is_traced, values.consts)):
        return _frozen(operation, tensors)
    return _call(operation, tensors, values)


def _innermost(tensor: Any) -> Any:
    """Give what is left of a value when derivatives and batches that are under way are put aside."""
    while True:
        if hasattr(tensor, "primal"):
            tensor = tensor.primal
        elif hasattr(tensor, "batch_dim"):
            tensor = tensor.val
        else:
            return tensor


def _outputs_of(operation: Operation) -> Callable[..., list[Any]]:
    return lambda *tensors: operation.forward(list(tensors))[0]


def _call(operation: Operation, tensors: Sequence[Any], values: Any = None) -> list[Any]:
    """Call a body, with the rule around it."""

    def differentiate(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        run = _run(operation, [pushed.array(primal) for primal in primals])
        return _with_tangents(run, primals, tangents)

    return called.call(operation.name, tensors, _outputs_of(operation), differentiate, values)


def _run(operation: Operation, tensors: list[Any]) -> _Run:
    if not any(map(is_traced, tensors)):
        with eval_context():  # JAX runs compiled code directly there, and by a long way inside a trace
            outputs, pull = operation.forward(tensors)
        return _Run(outputs, *_eager(operation, tensors, outputs, pull))
    outputs, pull = operation.forward(tensors)
    return _Run(outputs, *derived(operation, tensors, outputs, pull))


def _with_tangents(run: _Run, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    moved = pushed.tangents_of(run.derivative, run.outputs, run.residuals, tangents)
    if not any(map(is_traced, primals)):
        return run.outputs, moved
    return owned.own(run.derivative, run.outputs, run.residuals, primals), moved


# ── the derivative of a run ──────────────────────────────────────────────────────────────────────────────


def _eager(
    operation: Operation, tensors: list[Any], outputs: list[Any], pull: Pullback
) -> tuple[list[Any], Derivative]:
    kept = _kept(operation, tensors, outputs)
    derivative, run = _outline(operation, tensors, outputs, pull)
    return kept, dataclasses.replace(derivative, pull=lambda _, given: run(given), kept=len(kept))


def derived(
    operation: Operation, tensors: list[Any], outputs: list[Any], pull: Pullback
) -> tuple[list[Any], Derivative]:
    """Trace a pullback: what it closes over, and the derivative that takes it."""
    derivative, run = _outline(operation, tensors, outputs, pull)
    kept = _kept(operation, tensors, outputs)
    derivative = dataclasses.replace(derivative, operation=refusals.named(operation), kept=len(kept))
    places: list[int] = []

    def trace(*cotangents: Any) -> list[Any]:
        got = run(cotangents)
        places[:] = [i for i, cotangent in enumerate(got) if cotangent is not None]
        return [got[i] for i in places]

    try:
        closed = tracing.trace(trace, derivative.outputs, f"{operation.name}_grad")
    except Exception as error:  # said to whoever pulls: JAX asks for derivatives that nobody uses
        refuse = _refuse(error)
        return kept, dataclasses.replace(derivative, pull=refuse, push=derivative.push or refuse)

    jaxpr, count = closed.jaxpr, len(tensors)  # `pulled` keeps no traced array alive
    first, last = len(kept), len(kept) + len(closed.consts)

    def pulled(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        results: list[Any] = [None] * count
        for i, result in zip(places, tracing.run(jaxpr, residuals[first:last], cotangents)):
            results[i] = result
        return results

    takers = (*[None] * first, *((jaxpr, i) for i in range(last - first)))
    derivative = dataclasses.replace(derivative, pull=pulled, takers=takers)
    residuals = [*kept, *closed.consts]
    if operation.has_pushforward and captures.named(operation):
        return _pushing(operation, tensors, residuals, derivative)
    return residuals, derivative


def _pushing(
    operation: Operation, tensors: list[Any], residuals: list[Any], derivative: Derivative
) -> tuple[list[Any], Derivative]:
    """Trace a pushforward too, while the traced arrays live that it reaches."""
    moving = tuple(i for i, tensor in enumerate(tensors) if operation.host.differentiable(tensor))
    types = [pushed.tangent_type(tensors[i]) for i in moving]
    whole = dataclasses.replace(derivative, moving=moving)

    def trace(*tangents: Any) -> list[Any]:
        return forward.given(operation, whole, residuals, tangents)

    try:
        closed = tracing.trace(trace, types, f"{operation.name}_push")
    except Exception as error:  # said to whoever pushes
        return residuals, dataclasses.replace(derivative, push=_refuse(error))
    jaxpr, first, last = closed.jaxpr, len(residuals), len(residuals) + len(closed.consts)

    def push(derivative: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        moved = dict(zip(derivative.moving, tangents))
        full = [moved[i] if i in moved else varying.zeros(kind) for i, kind in zip(moving, types)]
        return tracing.run(jaxpr, residuals[first:last], full)

    takers = (*derivative.takers, *((jaxpr, i) for i in range(last - first)))
    return [*residuals, *closed.consts], dataclasses.replace(derivative, push=push, takers=takers)


def _refuse(error: Exception) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise error

    return refuse


def _kept(operation: Operation, tensors: list[Any], outputs: list[Any]) -> list[Any]:
    """List the inputs and outputs that a derivative needs beside what `grad` closes over."""
    if operation.has_pushforward:
        return [*tensors, *outputs] if getattr(operation, "pushes_output", False) else list(tensors)
    return list(tensors) if operation.order == 1 else []


def _outline(
    operation: Operation, tensors: list[Any], outputs: list[Any], pull: Pullback
) -> tuple[Derivative, Callable[[Sequence[Any]], list[Any]]]:
    floating = tuple(i for i, output in enumerate(outputs) if operation.host.differentiable(output))

    def run(cotangents: Sequence[Any]) -> list[Any]:
        given: list[Any] = [None] * len(outlines)
        for i, cotangent in zip(floating, cotangents):
            given[i] = _conjugate(cotangent)
        try:
            got = pull(given)
        except jax.errors.UnexpectedTracerError as error:
            raise captures.refuse(operation, captures.first_name(operation)) from error
        results = got.inputs
        if got.second is not None:
            results = _next_order(operation, tensors, filled(pull, given), got, pull)
        return [None if c is None else _conjugate(c) for c in results]

    outlines = [None] * len(outputs)  # `run` keeps no output alive
    types = tuple(pushed.tangent_type(outputs[i]) for i in floating)
    push = functools.partial(forward.given, operation) if operation.has_pushforward else None
    return Derivative(operation, _never, push, types, floating, len(tensors)), run


def _next_order(
    operation: Operation, tensors: Sequence[Any], cotangents: Sequence[Any], got: Cotangents, pull: Pullback
) -> list[Any]:
    """Put the user's second order on cotangents that somebody may differentiate.

    They stay those of this run: the body is not run again, as what it reads may have changed.
    """
    if not any(map(is_traced, tensors)):
        return got.inputs  # nothing depends on numbers, and on the cotangents they depend by themselves
    second: Any = operation.second(len(cotangents))
    operands = [*tensors, *cotangents]
    outputs, back = second.after(pull, got, tensors, cotangents)
    residuals, derivative = derived(second, operands, outputs, back)
    given = iter(owned.own(derivative, outputs, residuals, operands))
    return [None if cotangent is None else next(given) for cotangent in got.inputs]


def _never(*_: Any) -> Any:
    raise AssertionError("a derivative without a pullback")


def _conjugate(x: Any) -> Any:
    return jnp.conj(x) if x.dtype.kind == "c" else x


# ── body and pullback at once ────────────────────────────────────────────────────────────────────────────


def _frozen(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Trace body and pullback at once; make what they close over inputs."""
    identity, frozen = id(operation.identity), _freezing.get()
    if identity in frozen:  # a `grad` that calls its own rule
        return _call(operation, tensors)
    found: list[tuple[int, Derivative]] = []
    unknown = [i for i, tensor in enumerate(tensors) if isinstance(tensor, Tracer)]

    def trace(*given: Any) -> list[Any]:
        full = list(tensors)
        for i, tensor in zip(unknown, given):
            full[i] = tensor
        outputs, pull = operation.forward(full)
        residuals, derivative = derived(operation, full, outputs, pull)
        found[:] = [(len(outputs), derivative)]
        return [*outputs, *residuals]

    token = _freezing.set(frozen | {identity})
    try:
        closed = tracing.trace(trace, [jax.typeof(tensors[i]) for i in unknown], operation.name)
    finally:
        _freezing.reset(token)
    # what follows keeps no traced array alive, nor an operation, which may reach one
    jaxpr, inputs, known = closed.jaxpr, len(tensors), refusals.named(operation)
    ((count, derivative),) = found
    places = [i for i, const in enumerate(closed.consts) if isinstance(const, Tracer)]
    stopped = [captures.is_stopped(jaxpr, i, count, derivative.takers) for i in places]
    names = [captures.name_of(operation, closed.consts[i]) for i in places]
    constants = [None if isinstance(const, Tracer) else const for const in closed.consts]

    def results(operands: Sequence[Any]) -> list[Any]:
        consts = list(constants)
        for place, operand in zip(places, operands[inputs:]):
            consts[place] = operand
        return tracing.run(jaxpr, consts, [operands[i] for i in unknown])

    def values(*operands: Any) -> list[Any]:
        return results(operands)[:count]

    def differentiate(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        for i, (primal, tangent) in enumerate(zip(primals[inputs:], tangents[inputs:])):
            if pushed.moves(tangent) and not stopped[i]:
                raise captures.refuse(known, names[i], jnp.shape(primal))
        got = results([pushed.array(primal) for primal in primals])
        run = _Run(got[:count], got[count:], derivative)
        outputs, moved = _with_tangents(run, primals[:inputs], tangents[:inputs])
        return outputs, moved

    operands = [*tensors, *(closed.consts[i] for i in places)]
    return called.call(operation.name, operands, values, differentiate)
