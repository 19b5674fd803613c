"""The step ladder: the residual along one direction, extrapolated to step zero, with its error.

r(h) = ⟨v, f(x+hu) − f(x−hu)⟩ − ⟨g, displacement made⟩, over 2h, is c₂h² + c₄h⁴ + … + noise/h for a right
gradient. Two small anchor steps stop false convergence; a Richardson tableau above them buys the digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pullback.view.subject import Array

ONESIDED = 4.0  # times the noise of a central difference
Evaluate = Callable[[Array], "tuple[Array, Array]"]


@dataclass
class Line:
    """Evaluate a function along x + t·u, once per t."""

    evaluate: Evaluate
    x: Array
    u: Array
    seen: dict[float, tuple[Array, Array]] = field(default_factory=dict)
    onesided: bool = False  # the function is not asked for negative t

    def at(self, t: float) -> tuple[Array, Array]:
        """Give the point really reached (after rounding) and the outputs there."""
        if t not in self.seen:
            self.seen[t] = self.evaluate(self.x + t * self.u)
        return self.seen[t]

    def pair(self, h: float) -> tuple[Array, Array]:
        """Give the displacement and the change of the outputs over a central step.

        On one side, 4·f(h) − f(2h) − 3·f(0) stands for it: it errs by h², too.
        """
        if self.onesided:
            (x0, y0), (x1, y1), (x2, y2) = self.at(0.0), self.at(h), self.at(2 * h)
            with np.errstate(invalid="ignore"):
                return 4 * (x1 - x0) - (x2 - x0), 4 * (y1 - y0) - (y2 - y0)
        (xp, yp), (xm, ym) = self.at(h), self.at(-h)
        with np.errstate(invalid="ignore"):
            return xp - xm, yp - ym


@dataclass(frozen=True)
class Intercept:
    """Hold the residual at step zero, its error, and why it is no better."""

    value: float
    error: float
    reason: str = ""


def dot(a: Array, b: Array) -> float:
    """Multiply with zeros winning: a masked output may be infinite."""
    used = a != 0
    with np.errstate(invalid="ignore", over="ignore"):
        # no `a @ b`: BLAS would wake its threads for it, beside those of the framework
        return float((a * b).sum()) if used.all() else float((a[used] * b[used]).sum())


def residual(line: Line, v: Array, g: Array, h: float) -> float:
    """Give r(h)."""
    dx, dy = line.pair(h)
    return (dot(v, dy) - dot(g, dx)) / (2 * h)


def ladder_top(unit: float) -> float:
    """Choose the largest step for a unit roundoff."""
    return 2.0**-4 if unit < 1e-12 else 2.0**-3 if unit < 1e-5 else 0.5


def anchor(unit: float) -> float:
    """Choose the small step that stops false convergence."""
    return float(2.0 ** round(np.log2(np.sqrt(unit))))


def tableau(values: list[float], steps: list[float], noise: float) -> tuple[float, float]:
    """Extrapolate in h² and give the entry with the smallest estimated error."""
    best = (values[0], np.inf)
    rows: list[list[float]] = []
    amps: list[list[float]] = []
    for i, (value, h) in enumerate(zip(values, steps)):
        row, amp = [value], [noise / (2 * h)]
        for j in range(1, i + 1):
            factor = (steps[i - j] / h) ** 2
            row.append((factor * row[j - 1] - rows[i - 1][j - 1]) / (factor - 1))
            amp.append(float(np.hypot(factor * amp[j - 1], amps[i - 1][j - 1])) / (factor - 1))
            error = max(abs(row[j] - row[j - 1]), abs(row[j] - rows[i - 1][j - 1])) + amp[j]
            if error < best[1]:
                best = (row[j], error)
        rows.append(row)
        amps.append(amp)
    return best


def intercept(line: Line, v: Array, g: Array, *, noise: float, unit: float, target: float) -> Intercept:
    """Estimate r(0), from large steps when the small ones confirm them."""
    noise = ONESIDED * noise if line.onesided else noise
    small = anchor(unit)
    near = [residual(line, v, g, h) for h in (small, small / 4)]
    if not all(np.isfinite(near)):
        return Intercept(np.nan, np.inf, "domain")
    slack = [noise / (2 * small), noise / (small / 2)]
    gap = abs(near[0] - near[1])
    fallback = Intercept(near[0], 3 * slack[0] + gap, "rough" if gap > 3 * sum(slack) else "noise")
    if fallback.reason == "rough":
        return fallback
    top = ladder_top(unit)
    for start in (top, top / 16):
        steps = [start * 2.0**-k for k in range(4)]
        values = [residual(line, v, g, h) for h in steps]
        kept = [(r, h) for r, h in zip(values, steps) if np.isfinite(r)]
        if len(kept) < 2:
            continue
        value, error = tableau([r for r, _ in kept], [h for _, h in kept], noise)
        if abs(value) <= 5 * error and 10 * error < abs(near[0]):
            # Large steps confirm the claim, small ones deny it: the outputs are coarser than the small steps.
            fallback = Intercept(near[0], abs(near[0]), "rough")
        agrees = all(abs(value - r) <= 3 * s + error for r, s in zip(near, slack))
        if agrees and error < fallback.error:
            best = Intercept(value, error, "noise")
            if error <= target or start != top:
                return best
            fallback = best
    return fallback
