"""What JAX asks of the primitive `pushed`: its value, its transpose, its own derivative, a batch of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
from jax.interpreters import ad, batching, mlir

from pullback.hosts import refusals
from pullback.hosts.jax import owned, pushed
from pullback.hosts.jax.pushed import Derivative, Move, primitive, typed
from pullback.hosts.operation import Operation
from pullback.hosts.refusals import Named


@primitive.def_impl
def _evaluate(*operands: Any, derivative: Derivative) -> list[Any]:
    return [typed(moved, kind) for moved, kind in zip(derivative(*operands), derivative.outputs)]


@primitive.def_abstract_eval
def _types(*_: Any, derivative: Derivative) -> list[Any]:
    return list(derivative.outputs)


def _transpose(cotangents: Sequence[Any], *operands: Any, derivative: Derivative) -> list[Any]:
    residuals, tangents = operands[: derivative.count], operands[derivative.count :]
    pulled: list[Any] = [None] * len(tangents)
    if not all(type(c) is ad.Zero for c in cotangents):  # nobody asks for what nothing flows into
        given = [ad.instantiate_zeros(c) for c in cotangents]
        pulled = derivative.pulled(residuals, given)
        if derivative.operation.order == 1:
            pulled = _forbid(derivative.operation, pulled, [*residuals, *given])
    results: list[Any] = [None] * len(residuals)
    for cotangent, tangent in zip(pulled, tangents):
        if not ad.is_undefined_primal(tangent):
            results.append(None)
        elif cotangent is None:
            results.append(ad.Zero(tangent.aval))
        else:
            results.append(typed(cotangent, tangent.aval))
    return results


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, derivative: Derivative) -> Any:
    count = derivative.count
    outputs = primitive.bind(*primals, derivative=derivative)
    results = [ad.Zero(aval) for aval in derivative.outputs]
    if any(type(t) is not ad.Zero for t in tangents[count:]):
        linear = [ad.instantiate_zeros(t) for t in tangents[count:]]
        results = primitive.bind(*primals[:count], *linear, derivative=derivative)
    moving = [i for i in range(count) if type(tangents[i]) is not ad.Zero]
    if moving:
        values = [tangents[i] for i in moving]
        if derivative.operation.order == 1:
            moved = _refused(derivative.operation, derivative.outputs, values)
        else:
            moved = _along(derivative, primals[:count], moving, values, primals[count:])
        results = [ad.add_tangents(a, b) for a, b in zip(results, moved)]
    return outputs, results


def _along(
    derivative: Derivative,
    residuals: Sequence[Any],
    moving: Sequence[int],
    values: Sequence[Any],
    tangents: Sequence[Any],
) -> list[Any]:
    """Differentiate what is pushed along a change of the residuals.

    That of a transpose is the transpose of the pullback's own, which knows a second order that was given.
    """

    def change(move: Move, given: Sequence[Any]) -> Move:
        def changed(residuals: Sequence[Any], others: Sequence[Any]) -> list[Any]:
            def run(*moved: Any) -> list[Any]:
                full = list(residuals)
                for i, residual in zip(moving, moved):
                    full[i] = residual
                return move(full, others)

            changed: list[Any] = jax.jvp(run, [residuals[i] for i in moving], list(given))[1]
            return changed

        return changed

    if derivative.push is not None:
        return change(derivative.pushed, values)(residuals, tangents)
    # The change is handed on as a residual: while the map is judged, numbers stand for it.
    count = len(residuals)

    def pull(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return change(derivative.pull, residuals[count:])(residuals[:count], cotangents)

    return dataclasses.replace(derivative, pull=pull).pushed([*residuals, *values], tangents)


def _batch(axis: Any, operands: Sequence[Any], places: Sequence[Any], *, derivative: Derivative) -> Any:
    """Bind the primitive again, over batches: what it does to one example is done to each."""
    if all(place is None for place in places):
        results = primitive.bind(*operands, derivative=derivative)
        return results, [None] * len(results)
    count = derivative.count
    residuals = [x if d is None else pushed.front(axis, x, d) for x, d in zip(operands[:count], places)]
    tangents = [pushed.front(axis, x, d) for x, d in zip(operands[count:], places[count:])]
    batched = pushed.over_batch(derivative, axis, places[:count])
    results = primitive.bind(*residuals, *tangents, derivative=batched)
    return results, [0] * len(results)


def _forbid(operation: Operation | Named, results: Sequence[Any], sources: Sequence[Any]) -> list[Any]:
    """Make a derivative of these results an error, also where the body cut them off from their sources.

    The error waits until somebody needs the derivative: JAX computes tangents that nobody uses.
    """
    given = [i for i, result in enumerate(results) if result is not None]
    types = [pushed.tangent_type(results[i]) for i in given]
    refuse = pushed.refusal(
        operation, lambda: refusals.second_order(operation), types, tuple(range(len(given)))
    )
    forbidden = list(results)
    guarded = [results[i] for i in given]
    for i, result in zip(given, owned.own(refuse, guarded, (), [*guarded, *sources])):
        forbidden[i] = result
    return forbidden


def _refused(operation: Operation | Named, types: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Give tangents of these types that depend on others, and raise when they are needed."""
    refuse = pushed.refusal(operation, lambda: refusals.second_order(operation), types)
    return pushed.push(refuse, (), tangents)


ad.primitive_jvps[primitive] = _jvp
ad.primitive_transposes[primitive] = _transpose
batching.fancy_primitive_batchers[primitive] = _batch
mlir.register_lowering(primitive, mlir.lower_fun(_evaluate, multiple_results=True))
