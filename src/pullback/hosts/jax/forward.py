"""Forward mode: the user's pushforward, or the transpose of a linear pullback.

The transpose of a map that is not linear is a plausible wrong number. JAX refuses to transpose most of these
by itself; what it lets pass, a constant that is added, and what it cannot read, a rule inside the pullback,
is measured, at the residuals of the call or at random ones while a program is traced. What was found is
remembered on the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from pullback.errors import PullbackError
from pullback.hosts import linear, refusals
from pullback.hosts.jax import varying
from pullback.tangent import fitted

if TYPE_CHECKING:
    from pullback.hosts.jax.pushed import Derivative


def given(derivative: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Push by the user's own pushforward; the residuals begin with the tensors of the call."""
    operation = derivative.operation
    moved = dict(zip(derivative.moving, tangents))
    tensors = list(residuals[: derivative.inputs])
    host = operation.host
    full = [moved[i] if i in moved else host.zeros(host.outline(x)) for i, x in enumerate(tensors)]
    outputs = operation.pushforward(tensors, full)
    assert outputs is not None
    zeros = list(map(varying.zeros, derivative.outputs))
    kept = [zero if outputs[i] is None else outputs[i] for i, zero in zip(derivative.floating, zeros)]
    return fitted(kept, zeros, operation)


def transposed(derivative: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Push by the transpose of the pullback."""
    places: list[int] = []

    def pull(*cotangents: Any) -> list[Any]:
        got = derivative.pulled(residuals, cotangents)
        places[:] = [i for i, cotangent in enumerate(got) if cotangent is not None]
        return [varying.like(got[i], jax.typeof(tangents[i])) for i in places]

    operation = derivative.operation
    kinds = tuple((x.shape, x.dtype) for x in (*residuals, *derivative.outputs))
    key = operation.key(("forward", derivative.moving, kinds))
    found = operation.memo.get(key)
    if found is None:
        found = operation.memo[key] = _judge(derivative, residuals, pull)
    if found not in (linear.LINEAR, "measured"):
        raise refusals.forward_mode(operation, found)
    zeros = list(map(varying.zeros, derivative.outputs))
    transpose = jax.linear_transpose(pull, *zeros) if found == linear.LINEAR else jax.vjp(pull, *zeros)[1]
    moved = transpose([tangents[i] for i in places])
    return list(moved)


def _judge(derivative: Derivative, residuals: Sequence[Any], pull: Callable[..., list[Any]]) -> str:
    """Tell how a pullback is known to be linear, or why it is not."""
    zeros = list(map(varying.zeros, derivative.outputs))
    structural = _fails(lambda: jax.linear_transpose(pull, *zeros)(pull(*zeros))) is None
    try:
        with jax.ensure_compile_time_eval():
            values = _zero_at_zero if structural else _measure
            found = values(derivative, [_value(x, np.random.default_rng(20)) for x in residuals])
    except PullbackError:
        raise
    except Exception as error:  # whatever the user's code says to numbers that are not its own
        return linear.LINEAR if structural else linear.unknown(error)
    if found != linear.LINEAR or structural:
        return found
    error_found = _fails(lambda: jax.vjp(pull, *zeros)[1](pull(*zeros)))
    if error_found is not None:
        return f"not known to be linear (JAX cannot differentiate it: {type(error_found).__name__})"
    return "measured"


def _fails(run: Callable[[], Any]) -> Exception | None:
    """Run something of JAX that is not made for every function, and give the error it raised."""
    try:
        run()
    except PullbackError:  # a broken promise is one in every mode
        raise
    except Exception as error:  # the rules of single operations raise what they like, assertions too
        return error
    return None


def _zero_at_zero(derivative: Derivative, residuals: Sequence[Any]) -> str:
    zeros = [jnp.zeros(kind.shape, kind.dtype) for kind in derivative.outputs]
    for cotangent in derivative.pulled(residuals, zeros):
        if cotangent is not None and np.any(np.nan_to_num(np.asarray(cotangent, np.complex128))):
            return linear.NOT_LINEAR
    return linear.LINEAR


def _measure(derivative: Derivative, residuals: Sequence[Any]) -> str:
    kinds = derivative.outputs

    def pulled(cotangents: list[Any]) -> list[Any]:
        given = [jnp.asarray(c, kind.dtype) for c, kind in zip(cotangents, kinds)]
        got = derivative.pulled(residuals, given)
        return [None if g is None else np.asarray(g, np.complex128) for g in got]

    dtypes = [x.dtype.name for x in (*kinds, *residuals)]
    return linear.measured(pulled, [kind.shape for kind in kinds], dtypes)


def _value(residual: Any, rng: np.random.Generator) -> Any:
    """Give an array as it is, and random numbers in the place of a traced one."""
    if not isinstance(residual, jax.core.Tracer):
        return residual
    if jnp.issubdtype(residual.dtype, jnp.inexact):
        return jnp.asarray(linear.value(residual.shape, rng), residual.dtype)
    return jnp.zeros(residual.shape, residual.dtype)
