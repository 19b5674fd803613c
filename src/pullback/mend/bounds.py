"""Bounds: at a kink no single gradient is right, and the one-sided slopes bound every honest one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pullback.checker.directions import floor_of
from pullback.checker.edges import groups_of, slopes_along
from pullback.checker.problem import Problem
from pullback.view.subject import Array


@dataclass(frozen=True)
class Bound:
    """Say that ⟨g, u⟩ lies between two numbers."""

    u: Array
    low: float
    high: float

    def holds(self, g: Array) -> bool:
        """Tell whether a gradient is within."""
        claimed = float(g @ self.u)
        scale = max(abs(self.low), abs(self.high), abs(claimed))
        return max(self.low - claimed, claimed - self.high) <= 1e-3 * scale


def bounds(problem: Problem, v: Array) -> tuple[Bound, ...]:
    """Bound the gradient at a kink; nothing where the point is smooth."""
    scale = np.maximum(np.abs(problem.x), floor_of(problem.x))
    groups = groups_of(problem.x)[:3]
    single = [np.eye(1, problem.x.size, i)[0] for i in range(min(problem.x.size, 24))]
    shared = [np.isin(np.arange(problem.x.size), group).astype(float) for group in groups]
    found, kinked = [], False
    for base in (*single, *shared):
        slopes = slopes_along(problem, base * scale)
        if slopes is None:
            continue
        low, high, here = slopes.interval(v)
        kinked = kinked or here
        if np.isfinite([low, high]).all():
            found.append(Bound(base * scale, low, high))
    return tuple(found) if kinked else ()
