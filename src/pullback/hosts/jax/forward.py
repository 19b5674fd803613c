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

from pullback.errors import CotangentShapeError, ForwardModeError, PullbackError
from pullback.hosts.base import Operation, show_shape
from pullback.hosts.jax import varying

if TYPE_CHECKING:
    from pullback.hosts.jax.pushed import Derivative

_SCALES = (1e-3, 1.0, 1e3)  # a clip is linear for small cotangents, a rounding for large ones
_TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float64": 1e-9, "complex128": 1e-9}


def given(derivative: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Push by the user's own pushforward; the residuals begin with the tensors of the call."""
    operation = derivative.operation
    moved = dict(zip(derivative.moving, tangents))
    tensors = list(residuals[: derivative.inputs])
    host = operation.host
    full = [moved[i] if i in moved else host.zeros(host.outline(x)) for i, x in enumerate(tensors)]
    outputs = operation.pushforward(tensors, full)
    assert outputs is not None
    kept = [jnp.asarray(outputs[i]) for i in derivative.floating]
    for tangent, kind in zip(kept, derivative.outputs):
        if tangent.shape != kind.shape:
            raise CotangentShapeError.about(
                operation.where,
                found=f"the pushforward returned shape {show_shape(tangent.shape)} for an output of shape "
                f"{show_shape(kind.shape)}",
                expected="a tangent of its output's shape",
                fix=f"return a tangent of shape {show_shape(kind.shape)}",
            )
    return [tangent.astype(kind.dtype) for tangent, kind in zip(kept, derivative.outputs)]


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
    if found not in ("linear", "measured"):
        raise refused(operation, found)
    zeros = list(map(varying.zeros, derivative.outputs))
    transpose = jax.linear_transpose(pull, *zeros) if found == "linear" else jax.vjp(pull, *zeros)[1]
    moved = transpose([tangents[i] for i in places])
    return list(moved)


def refused(operation: Operation, found: str) -> ForwardModeError:
    """Say that there is no forward mode."""
    error: ForwardModeError = ForwardModeError.about(
        operation.where,
        found=f"forward mode was asked for, and the pullback is {found}",
        expected="a pullback that is linear in its cotangents, or a pushforward of its own",
        why="the transpose of a map that is not linear is a wrong number",
        fix=f"@{operation.name}.pushforward\ndef _(dx, x):\n    return …",
    )
    return error


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
        found = f"not known to be linear (it could not be run on its own: {type(error).__name__})"
        return "linear" if structural else found
    if found != "linear" or structural:
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
            return "not linear in its cotangents"
    return "linear"


def _measure(derivative: Derivative, residuals: Sequence[Any]) -> str:
    rng = np.random.default_rng(21)
    for scale in _SCALES:
        a, b = ([_random(kind, rng, scale) for kind in derivative.outputs] for _ in range(2))
        mixed = [2 * x - 3 * y for x, y in zip(a, b)]
        for ga, gb, gm in zip(*(derivative.pulled(residuals, c) for c in (a, b, mixed))):
            if ga is not None and not _close(2 * ga - 3 * gb, gm, abs(2 * ga) + abs(3 * gb)):
                return "not linear in its cotangents"
    return "linear"


def _value(residual: Any, rng: np.random.Generator) -> Any:
    """Give an array as it is, and random numbers in the place of a traced one."""
    if not isinstance(residual, jax.core.Tracer):
        return residual
    if jnp.issubdtype(residual.dtype, jnp.inexact):
        return jnp.asarray(rng.uniform(0.5, 1.5, residual.shape), residual.dtype)
    return jnp.zeros(residual.shape, residual.dtype)


def _random(kind: Any, rng: np.random.Generator, scale: float) -> Any:
    values = scale * rng.uniform(0.5, 1.5, kind.shape) * rng.choice([-1, 1], kind.shape)
    return jnp.asarray(values, kind.dtype)


def _close(a: Any, b: Any, scale: Any) -> bool:
    tolerance = _TOLERANCE.get(a.dtype.name, 1e-4)
    a, b, scale = (np.asarray(x, np.complex128) for x in (a, b, scale))
    finite = np.isfinite(a) & np.isfinite(b)
    largest = np.max(np.abs(scale[finite]), initial=0.0)
    return bool(np.all(np.abs(a - b)[finite] <= tolerance * largest))
