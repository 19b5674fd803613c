"""How much a function jitters: the noise that a difference quotient divides by its step.

Along a line of m + 1 equally spaced points the k-th differences of a smooth function vanish as the k-th
power of the spacing, those of noise of variance σ² have variance σ²·(2k)!/(k!)² (Moré and Wild, 2011). The
least of the estimates over k is the noise. Two spacings are tried, since a solver that takes the same steps
at close points shows its noise only further away; and wider ones as long as most values do not change at
all, which is what a program that prints six digits does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Evaluate = Callable[[Sequence[Array]], "list[Array]"]  # vectors to vectors
POINTS = 6  # beside the one that is known
WIDEST = 0.02  # relative spacing


def scales(x: Array, parts: Sequence[slice]) -> Array:
    """Give what each coordinate is moved relative to: its own size, if not far below the usual one."""
    sizes = np.abs(x)
    for part in parts:
        own = sizes[part]
        usual = float(np.sqrt(np.mean(own**2))) if own.size else 0.0
        sizes[part] = np.maximum(own, usual / 4 if 0 < usual < np.inf else 1.0)
    return sizes


def level(values: Array) -> float:
    """Estimate the noise in values at equally spaced points, a row each: its size over all columns."""
    table = values
    estimates = []
    for k in range(1, len(values)):
        table = np.diff(table, axis=0)
        factor = math.factorial(k) ** 2 / math.factorial(2 * k)
        estimates.append(math.sqrt(factor * float(np.sum(table**2)) / len(table)))
    return min(estimates)


def relative_noise(evaluate: Evaluate, x: Array, y: Array, sizes: Array, unit: float) -> float:
    """Measure the noise of a function at a point, relative to the size of its values."""
    rng = np.random.default_rng(2011)
    direction = sizes * rng.choice([-1.0, 1.0], x.size) * rng.uniform(0.5, 1.0, x.size)
    size = float(np.linalg.norm(y))
    found = unit
    spacing = unit**0.75
    while spacing < WIDEST:
        steps = [k - POINTS // 2 for k in range(POINTS + 1)]
        moved = evaluate([x + k * spacing * direction for k in steps if k != 0])
        values = np.stack([*moved[: POINTS // 2], y, *moved[POINTS // 2 :]])
        size = max(size, float(np.abs(values).max(initial=0.0)))
        if np.isfinite(values).all() and size > 0:
            found = max(found, level(values) / size)
        still = float(np.mean(np.diff(values, axis=0) == 0)) if values.size else 0.0
        if spacing >= unit**0.5 and still < 0.5:
            break
        spacing = max(unit**0.5, 32 * spacing) if spacing >= unit**0.5 else unit**0.5
    return min(found, 0.1)
