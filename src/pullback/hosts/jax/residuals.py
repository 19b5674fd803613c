"""The derivative of one run of a body, and its residuals: what the pullback closes over.

eager    the run was one on numbers. The pullback keeps what it closes over, and nothing is traced.
traced   the pullback is traced to a jaxpr, so that its residuals are values that JAX sees: it may put them
         through a loop, or differentiate them.

An explicit `gradgrad` is the derivative of a second operation, which is traced in the same way.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import traceback
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer, eval_jaxpr

from pullback.hosts import refusals
from pullback.hosts.jax import captures, forward, tracing, varying
from pullback.hosts.jax.derivative import Derivative, Refuse
from pullback.hosts.jax.linear_p import bind_outputs
from pullback.hosts.operation import Cotangents, Operation, Pullback, filled


def eager(
    operation: Operation, tensors: list[Any], outputs: list[Any], pull: Pullback
) -> tuple[list[Any], Derivative]:
    """Give the residuals and the derivative of a run, without tracing its pullback."""
    kinds = [jax.typeof(output).to_tangent_aval() for output in outputs]
    floating = tuple(i for i, kind in enumerate(kinds) if kind.dtype != jax.dtypes.float0)
    pushes = operation.has_pushforward
    # what a derivative needs beside what `grad` closes over
    kept = list(tensors) if pushes or operation.order == 1 else []
    if pushes and getattr(operation, "pushes_output", False):
        kept += outputs
    move = _Pull(operation, tensors, pull, len(outputs), floating)
    push = functools.partial(forward.pushforward, operation) if pushes else forward.transpose
    types, counts = tuple(kinds[i] for i in floating), (len(tensors), len(kept))
    return kept, Derivative(operation, move, push, types, floating, *counts, transposes=not pushes)


def traced(
    operation: Operation, tensors: list[Any], outputs: list[Any], pull: Pullback
) -> tuple[list[Any], Derivative]:
    """Give the residuals and the derivative of a run as values and programs; those keep no operation."""
    kept, derivative = eager(operation, tensors, outputs, pull)
    replaced = functools.partial(dataclasses.replace, derivative, operation=refusals.named(operation))
    try:
        run = functools.partial(derivative.pull, ())
        jaxpr, consts, given = tracing.trace(run, derivative.outputs, f"{operation.name}_grad")
    except Exception as error:  # said to whoever pulls: JAX asks for derivatives that nobody uses
        refuse = _waiting(error)
        push = refuse if derivative.transposes else derivative.push
        return kept, replaced(pull=refuse, push=push, transposes=False)
    residuals = [*kept, *consts]
    program = _TracedPull(jaxpr, slice(len(kept), len(residuals)), given, len(tensors))
    takers = (*[None] * len(kept), *zip(itertools.repeat(jaxpr), range(len(consts))))
    derivative = replaced(pull=program, takers=takers)
    if not derivative.transposes and captures.named(operation):
        return _with_traced_push(operation, tensors, residuals, derivative)
    return residuals, derivative


def _with_traced_push(
    operation: Operation, tensors: list[Any], residuals: list[Any], derivative: Derivative
) -> tuple[list[Any], Derivative]:
    """Trace a pushforward too, while the traced arrays live that it reaches."""
    moving = tuple(i for i, tensor in enumerate(tensors) if operation.host.differentiable(tensor))
    types = [jax.typeof(tensors[i]).to_tangent_aval() for i in moving]
    whole = dataclasses.replace(derivative, moving=moving)
    try:
        push = functools.partial(forward.pushforward, operation, whole, residuals)
        jaxpr, consts, _ = tracing.trace(push, types, f"{operation.name}_push")
    except Exception as error:  # said to whoever pushes
        return residuals, dataclasses.replace(derivative, push=_waiting(error))
    program = _TracedPush(jaxpr, slice(len(residuals), len(residuals) + len(consts)), moving, types)
    takers = (*derivative.takers, *zip(itertools.repeat(jaxpr), range(len(consts))))
    return [*residuals, *consts], dataclasses.replace(derivative, push=program, takers=takers)


class _EarlierError(Exception):
    """The way that an error came, in words: the frames themselves hold what was traced in them."""


def _waiting(error: Exception) -> Refuse:
    """Keep an error until somebody needs the derivative, and no traced array with it."""
    error.__cause__ = _EarlierError("".join(traceback.format_exception(error)))
    error.__context__ = error.__traceback__ = None
    return Refuse(lambda: error.with_traceback(None))


@dataclasses.dataclass(frozen=True, eq=False)
class _Pull:
    """The user's pullback, which takes and gives the cotangents that JAX has; it keeps no output alive."""

    operation: Operation
    tensors: Sequence[Any]
    pull: Pullback
    count: int  # of the outputs
    floating: Sequence[int]

    def __call__(self, _: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        given: list[Any] = [None] * self.count
        for i, cotangent in zip(self.floating, cotangents):
            given[i] = jnp.conj(cotangent) if cotangent.dtype.kind == "c" else cotangent
        try:
            got = self.pull(given)
        except jax.errors.UnexpectedTracerError as error:
            raise captures.refuse(self.operation, captures.first_name(self.operation)) from error
        results = list(got.inputs)
        if got.second is not None:
            results = self._with_gradgrad(filled(self.pull, given), got)
        for i, cotangent in enumerate(results):
            if cotangent is not None and cotangent.dtype.kind == "c":
                results[i] = jnp.conj(cotangent)
        return results

    def _with_gradgrad(self, cotangents: list[Any], got: Cotangents) -> list[Any]:
        """Put the user's second order on cotangents that somebody may differentiate.

        They stay those of this run: the body is not run again, as what it reads may have changed.
        """
        if not any(isinstance(tensor, Tracer) for tensor in self.tensors):
            return got.inputs  # nothing depends on numbers, and on the cotangents they depend by themselves
        second: Any = self.operation.second(len(cotangents))
        operands = [*self.tensors, *cotangents]
        outputs, pull = second.after(self.pull, got, self.tensors, cotangents)
        residuals, derivative = traced(second, operands, outputs, pull)
        given = iter(bind_outputs(derivative, outputs, residuals, operands))
        return [None if cotangent is None else next(given) for cotangent in got.inputs]


@dataclasses.dataclass(frozen=True, eq=False)
class _TracedPull:
    """The program of a pullback; it keeps no traced array alive."""

    jaxpr: Any
    taken: slice  # of the residuals
    given: list[int]  # the inputs that have a cotangent
    count: int  # of the inputs

    def __call__(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        results: list[Any] = [None] * self.count
        for i, result in zip(self.given, eval_jaxpr(self.jaxpr, (), *residuals[self.taken], *cotangents)):
            results[i] = result
        return results


@dataclasses.dataclass(frozen=True, eq=False)
class _TracedPush:
    """The program of a pushforward; it keeps no traced array alive."""

    jaxpr: Any
    taken: slice  # of the residuals
    moving: tuple[int, ...]  # the inputs that may have a tangent
    types: list[Any]  # of these tangents

    def __call__(
        self, derivative: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]
    ) -> list[Any]:
        moved = dict(zip(derivative.moving, tangents))
        full = [moved[i] if i in moved else varying.zeros(kind) for i, kind in zip(self.moving, self.types)]
        return list(eval_jaxpr(self.jaxpr, (), *residuals[self.taken], *full))
