"""Forward mode: the user's pushforward, or the transpose of a linear pullback.

The transpose of a map that is not linear is a plausible wrong number, so linearity is measured first: at the
values of the call in eager mode, at random ones while a graph is traced. What was measured is remembered on
the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.errors import ForwardModeError
from pullback.hosts.base import Operation, Pullback
from pullback.hosts.tensorflow import recording

_SCALES = (1e-3, 1.0, 1e3)  # a clip is linear for small cotangents, a rounding for large ones
_TOLERANCE = {tf.float16: 2e-2, tf.bfloat16: 1e-1, tf.float64: 1e-9, tf.complex128: 1e-9}


def push(
    operation: Operation, pull: Pullback, tensors: list[Any], variables: list[Any], tangents: Any
) -> list[Any]:
    """Take tangents of the inputs, and of captured variables behind them, to tangents of the outputs."""
    given = operation.pushforward(tensors, tangents[: len(tensors)])
    if given is not None:
        return given
    require_linear(operation, tensors)
    # A tape inside an accumulator's own computation records nothing unless its state is set aside.
    with recording.set_accumulators_aside():
        return _transpose(pull, variables, tangents)


def _transpose(pull: Pullback, variables: list[Any], tangents: Sequence[Any]) -> list[Any]:
    """Pull the tangents back through the pullback: for a linear map, its transpose."""
    cotangents = pull.zeros()
    with tf.GradientTape() as tape:
        tape.watch(cotangents)
        got = pull(cotangents, variables)
    pairs = [(c, t) for c, t in zip(got.inputs + got.variables, tangents) if c is not None]
    return tape.gradient(
        [c for c, _ in pairs],
        cotangents,
        output_gradients=[t for _, t in pairs],
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )


def require_linear(operation: Operation, tensors: Sequence[Any]) -> None:
    """Refuse forward mode for a pullback that is not linear, and has no pushforward beside it."""
    if operation.has_pushforward:
        return
    key = operation.key(tuple((str(tensor.shape), tensor.dtype) for tensor in tensors))
    linear = operation.memo.get(key)
    if linear is None:
        linear = operation.memo[key] = _measure(operation, tensors)
    if linear != "linear":
        raise ForwardModeError.about(
            operation.where,
            found=f"forward mode was asked for, and the pullback is {linear}",
            expected="a pullback that is linear in its cotangents, or a pushforward of its own",
            why="the transpose of a map that is not linear is a wrong number",
            fix=f"@{operation.name}.pushforward\ndef _(dx, x):\n    return …",
        )


def _measure(operation: Operation, tensors: Sequence[Any]) -> str:
    with tf.init_scope():
        rng = np.random.default_rng(20)
        try:
            _, pull = operation.forward([_value(tensor, rng) for tensor in tensors])
            for scale in _SCALES:
                a, b = (_random_cotangents(pull, rng, scale) for _ in range(2))
                mixed = [2 * x - 3 * y for x, y in zip(a, b)]
                for ga, gb, gm in zip(*(pull(c).inputs for c in (a, b, mixed))):
                    if ga is not None and not _close(2 * ga - 3 * gb, gm, abs(2 * ga) + abs(3 * gb)):
                        return "not linear in its cotangents"
        except (TypeError, ValueError, tf.errors.OpError) as error:
            if type(error).__module__.startswith("pullback."):
                raise
            return f"not known to be linear (it could not be run on its own: {type(error).__name__})"
    return "linear"


def _value(tensor: Any, rng: np.random.Generator) -> Any:
    """Give an eager tensor as it is, and random numbers in the place of a symbolic one."""
    if hasattr(tensor, "numpy"):
        return tensor
    shape = [3] if tensor.shape.rank is None else [3 if n is None else n for n in tensor.shape]
    if tensor.dtype.is_floating or tensor.dtype.is_complex:
        return tf.cast(rng.uniform(0.5, 1.5, shape), tensor.dtype)
    return tf.zeros(shape, tensor.dtype)


def _random_cotangents(pull: Pullback, rng: np.random.Generator, scale: float) -> list[Any]:
    return [
        tf.cast(scale * rng.uniform(0.5, 1.5, zero.shape) * rng.choice([-1, 1], zero.shape), zero.dtype)
        for zero in pull.zeros()
    ]


def _close(a: Any, b: Any, scale: Any) -> bool:
    tolerance = _TOLERANCE.get(a.dtype, 1e-4)
    a, b, scale = (np.asarray(tf.cast(x, tf.complex128)) for x in (a, b, scale))
    finite = np.isfinite(a) & np.isfinite(b)
    largest = np.max(np.abs(scale[finite]), initial=0.0)
    return bool(np.all(np.abs(a - b)[finite] <= tolerance * largest))
