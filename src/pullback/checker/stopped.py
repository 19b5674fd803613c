"""Functions that are computed to a tolerance: solvers that stop when they are near enough.

Such a function is smooth in pieces. On a piece it drifts away from the exact solution, and between pieces,
where the number of iterations changes, a jump takes it back. The gradient of the exact solution is the slope
over many pieces, and misses that of each: by what the jumps make up for, which no test on one piece can see.
So a failure stands only if the slope over a window of many pieces denies the claim, too, by more than the
jumps there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.checker.directions import relative, signed
from pullback.checker.equation import Equation, length
from pullback.checker.problem import Problem
from pullback.checker.steps import Line, dot, ladder_top
from pullback.checker.within import line as line_of
from pullback.view.subject import Array

POINTS, ORDER = 64, 6  # of a window, and of the differences in which a jump stands out
SPARSE = 4  # a jump shows among so many fewer points, too
LARGEST = 10.0  # of the binomials that such a difference makes of a jump of one
SHARE = 8.0  # times the jump, over the window: what a slope fitted to it may be off by
BENT = 3.0  # between one, of a jump, and four, of a kink
COARSEST = 0.05  # the resolution that a window must have to tell anything


def confirmed(failures: Sequence[tuple[Equation, Array, Array, Line]], unit: float) -> float | None:
    """Give the resolution at which slopes over many pieces confirm the claim; None if a failure stands."""
    coarsest = 0.0
    for found, v, g, line in sorted(failures, key=lambda failure: -failure[0].discrepancy):
        reached = _resolved(found, v, g, line, unit)
        if reached is None:
            return None
        coarsest = max(coarsest, reached)
    return coarsest


def _resolved(found: Equation, v: Array, g: Array, line: Line, unit: float) -> float | None:
    top = ladder_top(unit)
    if not any(_residual(line, v, g, h) <= COARSEST * found.scale for h in (top, top / 16)):
        return None
    for reach in (top, 2 * top, 4 * top, top / 4, top / 16):
        if _is_smooth(*_sampled(line, v, g, reach, POINTS // SPARSE)):
            continue
        t, drift = _sampled(line, v, g, reach)
        jump = _jump(drift)
        if jump is None or not 0 < SHARE * jump <= COARSEST * reach * found.scale:
            continue
        fitted = np.polynomial.Polynomial.fit(t, drift, ORDER - 1)
        if np.abs(fitted(t) - drift).max() > SHARE * jump:
            continue
        slope = fitted.deriv()(0.0)
        return SHARE * jump / (reach * found.scale) if abs(slope) <= SHARE * jump else None
    return None


def _is_smooth(t: Array, drift: Array) -> bool:
    """Tell whether a few samples of a window show a slope beside which no jump can be."""
    if not np.isfinite(drift).all():
        return False
    fitted = np.polynomial.Polynomial.fit(t, drift, ORDER - 1)
    return bool(abs(fitted.deriv()(0.0)) > LARGEST * SHARE * np.abs(fitted(t) - drift).max())


def iterates(problem: Problem, rng: np.random.Generator) -> bool:
    """Tell whether a function jumps around its point: by little, and by much more than rounding."""
    v = np.where(np.isfinite(problem.y), signed(rng, problem.y.size), 0.0)
    g = problem.gradient(v)
    along = line_of(problem, np.where(problem.still(), 0.0, relative(rng, problem.x)))
    size = length(v[v != 0] * problem.y[v != 0])
    for reach in (1.0, 4.0):
        jump = _jump(_sampled(along, v, g, reach * ladder_top(problem.unit))[1])
        if jump is not None and 1e3 * problem.unit * size < jump < 1e-3 * size:
            return True
    return False


def _sampled(line: Line, v: Array, g: Array, reach: float, steps: int = POINTS) -> tuple[Array, Array]:
    """Give the places of a window, in units of its reach, and the drift at each."""
    t = np.linspace(0.0 if line.onesided else -1.0, 1.0, steps + 1)
    return t, np.array([_drift(line, v, g, reach * s) for s in t])


def _drift(line: Line, v: Array, g: Array, t: float) -> float:
    """Measure how far ⟨v, f⟩ is at t from where the claim leads."""
    x, y = line.at(t)
    return dot(v, y - line.at(0.0)[1]) - dot(g, x - line.x)


def _residual(line: Line, v: Array, g: Array, h: float) -> float:
    back = 0.0 if line.onesided else -h
    return abs(_drift(line, v, g, h) - _drift(line, v, g, back)) / (h - back)


def _jump(drift: Array) -> float | None:
    """Measure the jumps of a sampled line; None where it has none, but bends, or is not finite.

    Differences of high order leave nothing of what is smooth. At four times the spacing those of a jump are
    as large as before; those of a kink are four times as large.
    """
    if not np.isfinite(drift).all():
        return None
    fine, coarse = (float(np.abs(np.diff(d, ORDER)).max()) / LARGEST for d in (drift, drift[::4]))
    return fine if coarse <= BENT * fine else None
