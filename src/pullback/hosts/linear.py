"""Whether a pullback is linear in its cotangents: measured, where nothing else tells.

A linear pullback J gives 2·J(a) − 3·J(b) for 2a − 3b. That is asked at three sizes of cotangents, because a
clip is linear for small ones and a rounding for large ones. The transpose of a map that is not linear is a
plausible wrong number, so forward mode asks first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.dtypes import linear
from pullback.hosts import refusals
from pullback.hosts.operation import Operation

Array = Any
Pull = Callable[[list[Array]], "list[Array | None]"]  # cotangents in and out, in double precision

LINEAR = "linear"
NOT_LINEAR = "not linear in its cotangents"
CUT_OFF = "computed from its cotangents in a way that cannot be transposed (stop_gradient, or outside code)"
SCALES = (1e-3, 1.0, 1e3)


def measured(pull: Pull, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str]) -> str:
    """Ask a pullback at random cotangents; `dtypes` are those in which it computes."""
    rng = np.random.default_rng(20)
    allowed = tolerance(dtypes)
    for scale in SCALES:
        a, b = ([_drawn(shape, rng, scale) for shape in shapes] for _ in range(2))
        mixed = [2 * x - 3 * y for x, y in zip(a, b)]
        for ga, gb, gm in zip(pull(a), pull(b), pull(mixed)):
            if ga is None or gb is None or gm is None:
                continue
            if not _close(2 * ga - 3 * gb, gm, allowed, np.abs(2 * ga) + np.abs(3 * gb)):
                return NOT_LINEAR
    return LINEAR


def tolerance(dtypes: Sequence[str]) -> float:
    """Say how far, relative to what is added up, rounding moves a linear pullback that computes in these."""
    return max(map(linear, dtypes), default=1e-4)


def unknown(error: Exception) -> str:
    """Say that a pullback could not be asked."""
    return f"not known to be linear (it could not be run on its own: {type(error).__name__})"


def require(
    operation: Operation, kinds: Any, ask: Callable[[], str], failures: tuple[type[Exception], ...]
) -> None:
    """Refuse a pullback that is not linear; what was asked for such kinds of tensors is remembered."""
    key = operation.key(kinds)
    found = operation.memo.get(key)
    if found is None:
        try:
            found = ask()
        except failures as error:
            if type(error).__module__.startswith("pullback."):
                raise
            found = unknown(error)
        operation.memo[key] = found
    if found != LINEAR:
        raise refusals.forward_mode(operation, found)


def value(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Make numbers that stand for an input whose value is not known yet."""
    return rng.uniform(0.5, 1.5, shape)


def _drawn(shape: tuple[int, ...], rng: np.random.Generator, scale: float) -> Array:
    return scale * rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)


def _close(a: Array, b: Array, tolerance: float, sizes: Array) -> bool:
    finite = np.isfinite(a) & np.isfinite(b)
    largest = np.max(sizes[finite], initial=0.0)
    return bool(np.all(np.abs(a - b)[finite] <= tolerance * largest))
