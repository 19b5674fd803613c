"""Forward mode: the user's pushforward, or the transpose of a linear pullback.

The transpose of a map that is not linear is a plausible wrong number. JAX refuses to transpose most of these
by itself; it lets a constant pass that is added, and cannot read a rule inside the pullback. So the program
of the pullback is asked first (`linearity.py`), in every call: `grad` may take another way the next time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.core import eval_jaxpr

from pullback.errors import PullbackError
from pullback.hosts import linear, refusals
from pullback.hosts.jax import inline, linearity, tracing, varying
from pullback.hosts.jax.derivative import Derivative
from pullback.hosts.operation import Operation, fitted


def pushforward(
    operation: Operation, derivative: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Push by the user's own pushforward; the residuals begin with the tensors and outputs of the run."""
    moved = dict(zip(derivative.moving, tangents))
    tensors = list(residuals[: derivative.inputs])
    host = operation.host
    full = [moved[i] if i in moved else host.zeros(host.outline(x)) for i, x in enumerate(tensors)]
    push: Callable[..., list[Any] | None] = operation.pushforward
    ran = residuals[derivative.inputs : derivative.kept]
    outputs = push(tensors, full, ran) if ran else push(tensors, full)
    assert outputs is not None
    zeros = list(map(varying.zeros, derivative.outputs))
    kept = [zero if outputs[i] is None else outputs[i] for i, zero in zip(derivative.floating, zeros)]
    return fitted(kept, zeros, operation)


def transpose(derivative: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Push by the transpose of the pullback."""
    operation = derivative.operation

    def pull(cotangents: list[Any]) -> list[Any]:
        got = derivative.vjp(residuals, cotangents)
        return [None if c is None else varying.like(c, jax.typeof(t)) for c, t in zip(got, tangents)]

    try:
        jaxpr, consts, places = tracing.trace(pull, derivative.outputs, f"{operation.name}_grad")
    except PullbackError:  # a broken promise is one in every mode
        raise
    except Exception as error:  # what the user's code says to numbers that it cannot see
        raise refusals.forward_mode(operation, linear.unknown(error)) from error
    found, rules = linearity.judge(jaxpr, consts)
    if found != linear.LINEAR:
        raise refusals.forward_mode(operation, found)

    if rules:
        run = functools.partial(inline.run, jaxpr, consts)
    else:
        run = functools.partial(eval_jaxpr, jaxpr, (), *consts)
    zeros, given = list(map(varying.zeros, derivative.outputs)), [tangents[i] for i in places]
    if not rules:
        with contextlib.suppress(Exception):  # JAX can differentiate some maps that it cannot transpose
            return list(jax.linear_transpose(run, *zeros)(given))
    try:
        return list(jax.vjp(run, *zeros)[1](given))
    except PullbackError:
        raise
    except linearity.UnprovenError as unproven:
        raise refusals.forward_mode(operation, str(unproven)) from None
    except Exception as error:  # the rules of single operations raise what they like, assertions too
        found = f"not known to be linear (JAX cannot differentiate it: {type(error).__name__})"
        raise refusals.forward_mode(operation, found) from error
