"""The derivative test in float16 and bfloat16, where no single equation resolves anything.

Many equations together do: the discrepancies are regressed on the claims. A wrong factor is a slope; a
wrong shape of the gradient is scatter that the errors do not explain.
"""

from __future__ import annotations

import numpy as np

from pullback.checker.directions import floored, relative, signed
from pullback.checker.edges import at_edge
from pullback.checker.equation import Outcome, equation, noise_of
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.checker.within import line as inner_line
from pullback.view.subject import Array

DIRECTIONS = 8


def slope_test(problem: Problem, rng: np.random.Generator, settings: Settings, still: Array) -> Outcome:
    """Fit measured − claimed = b · claimed over eight directions and two cotangents."""
    vs = [np.where(np.isfinite(problem.y), signed(rng, problem.y.size), 0.0) for _ in range(2)]
    gs = [problem.gradient(v) for v in vs]
    samples: list[tuple[Array, Array]] = []
    noises = [noise_of(problem, v, g, rng, samples) for v, g in zip(vs, gs)]
    rows = []
    for draw in (relative, floored) * (DIRECTIONS // 2):
        line = inner_line(problem, np.where(still, 0.0, draw(rng, problem.x)))
        for v, g, noise in zip(vs, gs, noises):
            found = equation(problem, line, v, g, noise=noise, target=1e-3)
            if np.isfinite(found.error) and found.error > 0:
                rows.append((found, v, line))
    if len(rows) < DIRECTIONS:
        return Outcome("undecided", reason="domain")
    gap = np.array([f.measured - f.claimed for f, _, _ in rows])
    error = np.array([f.error for f, _, _ in rows])
    claim = np.array([f.claimed for f, _, _ in rows])
    weight = error**-2
    power = float(np.sum(weight * claim**2))
    b = float(np.sum(weight * claim * gap)) / power if power else 0.0
    scatter = float(np.sqrt(np.mean(((gap - b * claim) / error) ** 2)))
    # The errors are bounds, not deviations: scatter tells how much of them is real.
    sigma = float(max(0.3, scatter) / np.sqrt(power)) if power else 0.0
    demanded = settings.demanded(problem.unit)
    if abs(b) + 3 * sigma <= demanded and scatter < 4:
        return Outcome("right", abs(b) + 3 * sigma)
    if (abs(b) > 4 * sigma and abs(b) > demanded / 4) or scatter >= 4:
        worst, v, line = max(rows, key=lambda row: abs(row[0].measured - row[0].claimed) / row[0].error)
        edge = at_edge(problem, [row[2] for row in rows[::4]], rng)
        return edge or Outcome("wrong", sigma, "", worst, v, line.u)
    return Outcome("undecided", abs(b) + 3 * sigma, "noise")
