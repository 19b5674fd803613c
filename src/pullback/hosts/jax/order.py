"""What is known of the next derivative: a rule for first derivatives only, or the user's `gradgrad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.hosts import refusals
from pullback.hosts.base import Cotangents, Operation, Pullback
from pullback.hosts.refusals import Named


def next_order(
    operation: Operation, tensors: Sequence[Any], cotangents: Sequence[Any], got: Cotangents, pull: Pullback
) -> list[Any]:
    """Put the user's second order on cotangents that somebody may differentiate.

    They stay those of this run: the body is not run again, as what it reads may have changed.
    """
    from pullback.hosts.jax import owned
    from pullback.hosts.jax.apply import derived, is_traced

    if not any(map(is_traced, tensors)):
        return got.inputs  # nothing depends on numbers, and on the cotangents they depend by themselves
    second: Any = operation.second(len(cotangents))
    operands = [*tensors, *cotangents]
    outputs, back = second.after(pull, got, tensors, cotangents)
    residuals, derivative = derived(second, operands, outputs, back)
    given = iter(owned.own(derivative, outputs, residuals, operands))
    return [None if cotangent is None else next(given) for cotangent in got.inputs]


def forbid(operation: Operation | Named, results: Sequence[Any], sources: Sequence[Any]) -> list[Any]:
    """Make a derivative of these results an error, also where the body cut them off from their sources.

    The error waits until somebody needs the derivative: JAX computes tangents that nobody uses.
    """
    from pullback.hosts.jax import owned, pushed

    given = [i for i, result in enumerate(results) if result is not None]
    types = [pushed.tangent_type(results[i]) for i in given]
    refusal = pushed.refusal(
        operation, lambda: refusals.second_order(operation), types, tuple(range(len(given)))
    )
    forbidden = list(results)
    guarded = [results[i] for i in given]
    for i, result in zip(given, owned.own(refusal, guarded, (), [*guarded, *sources])):
        forbidden[i] = result
    return forbidden


def refused(operation: Operation | Named, types: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Give tangents of these types that depend on others, and raise when they are needed."""
    from pullback.hosts.jax import pushed

    refusal = pushed.refusal(operation, lambda: refusals.second_order(operation), types)
    return pushed.push(refusal, (), tangents)
