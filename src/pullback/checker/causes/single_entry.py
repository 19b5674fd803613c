"""One entry among many is wrong, and there is no plain gradient to compare with: three projections name
it.
"""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match
from pullback.checker.directions import relative
from pullback.checker.equation import noise_of
from pullback.checker.evidence import Evidence
from pullback.checker.steps import Line, intercept

SLUG = "wrong-region"
RANK = 3


def search(evidence: Evidence) -> Match | None:
    """Measure the error along u, t·u and t²·u with t = index/n: a single entry has no spread."""
    if evidence.true is not None or not np.isfinite(evidence.claimed[0]).all():
        return None
    problem, rng = evidence.problem, evidence.settings.rng(21)
    v, g = evidence.vs[0], evidence.claimed[0]
    n = problem.x.size
    t = np.arange(n) / n
    u = np.where(problem.still(), 0.0, relative(rng, problem.x))
    noise = noise_of(problem, v, g, rng, [])
    moments = []
    for weight in (np.ones(n), t, t * t):
        line = Line(problem.evaluate, problem.x, u * weight, {0.0: (problem.x, problem.y)})
        size = float(np.linalg.norm(g * line.u))
        found = intercept(line, v, g, noise=noise, unit=problem.unit, target=8 * problem.unit * size)
        moments.append((found.value, found.error))
    (m0, e0), (m1, e1), (m2, _) = moments
    if abs(m0) <= 20 * e0 or not np.isfinite(m1):
        return None
    position = m1 / m0
    index, slack = round(position * n), n * (e1 + e0) / abs(m0)
    if not 0 <= index < n or abs(m2 / m0 - position**2) > 1e-4 or slack > 0.4:
        return None
    k, entry = problem.domain.where(index)
    name = evidence.name(k)
    where = f"{name}[{', '.join(map(str, entry))}]"
    return Match(
        SLUG,
        f"one entry of the gradient is wrong: that of `{where}`",
        f"look at how `{where}` is handled",
        where,
    )
