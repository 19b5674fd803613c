"""The derivative test: is this vector the derivative of that function, to what resolution?

An equivalence test with three answers. Cost: 4 forwards and 12 per direction, one pullback per cotangent,
whatever the sizes are. A failure must show on two directions; a point that turns out to be an edge goes
to `edges`.
"""

from __future__ import annotations

import numpy as np

from pullback.checker.directions import floored, relative, signed
from pullback.checker.edges import at_edge, diverges, slopes_along
from pullback.checker.equation import Equation, Outcome, Verdict, equation, noise_of
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.checker.slope import slope_test
from pullback.checker.steps import Line
from pullback.checker.stopped import confirmed
from pullback.checker.within import line as inner_line
from pullback.dtypes import TARGET
from pullback.view.subject import Array


def judge(equation: Equation, unit: float, settings: Settings) -> Verdict:
    """Decide one equation alone."""
    limit = settings.confidence * equation.error
    gap = abs(equation.measured - equation.claimed)
    demanded = settings.demanded(unit)
    if not np.isfinite(equation.error):
        return "undecided"
    if gap > limit:
        # float32 on a function with a jump in its second derivative: the error estimate is too small there.
        if unit > 1e-12 and gap < 1e-4 * equation.scale:
            return "undecided"
        # What only a finer dtype than the shipped one can see is no fault of the shipped rule.
        if unit < settings.shipped and gap < 64 * settings.shipped * equation.scale:
            return "right"
        if gap < equation.hidden:
            return "undecided"
        if settings.rtol is not None and gap < settings.rtol * equation.scale:
            return "right"
        # A derivative of zero has no digits to be right in, and a difference is not zero there.
        if settings.rtol is not None and gap < settings.rtol * equation.size:
            return "undecided"
        return "wrong"
    if equation.scale == 0 or equation.error <= demanded * equation.scale or equation.vanishes:
        return "right"
    return "undecided"


def derivative_test(
    problem: Problem,
    rng: np.random.Generator,
    settings: Settings,
    *,
    cotangents: int = 2,
    support: Array | None = None,
) -> Outcome:
    """Test the claimed pullback at the problem's point; `support` marks the reals to move, all by default."""
    if problem.x.size == 0 or problem.y.size == 0:
        return Outcome("undecided", reason="empty")
    finite = np.isfinite(problem.y)
    if not finite.any() or not np.isfinite(problem.x).all():
        return Outcome("undecided", reason="nonfinite")
    vs = [np.where(finite, signed(rng, problem.y.size), 0.0) for _ in range(cotangents)]
    gs = [problem.gradient(v) for v in vs]
    still = problem.still() if support is None else problem.still() | ~support
    if still.all():
        return Outcome("undecided", reason="no gradient")
    if not all(np.isfinite(g).all() for g in gs):
        return nonfinite_claim(problem, vs[0], gs[0], rng)
    if problem.unit > 1e-5:
        return slope_test(problem, rng, settings, still)
    target = TARGET.get(problem.unit, 1e-3)
    samples: list[tuple[Array, Array]] = []
    noises = [noise_of(problem, v, g, rng, samples) for v, g in zip(vs, gs)]
    failures: list[tuple[Equation, Array, Array, Line]] = []
    equations: list[Equation] = []
    verdicts: list[Verdict] = []
    failed_lines = 0
    for draw in (relative, floored, relative):
        line = inner_line(problem, np.where(still, 0.0, draw(rng, problem.x)))
        failing = False
        for v, g, noise in zip(vs, gs, noises):
            found = equation(problem, line, v, g, noise=noise, target=target)
            verdict = judge(found, problem.unit, settings)
            equations.append(found)
            verdicts.append(verdict)
            if verdict == "wrong":
                failing = True
                failures.append((found, v, g, line))
        failed_lines += failing
        if len(equations) == 2 * cotangents and failed_lines != 1:
            break
    if failed_lines >= 2:
        worst, v, _, line = max(failures, key=lambda f: f[0].discrepancy)
        over_pieces = confirmed(failures, problem.unit)
        if over_pieces is not None:
            enough = over_pieces <= settings.demanded(max(problem.unit, settings.shipped))
            return Outcome("right" if enough else "undecided", over_pieces, "stopped")
        edge = at_edge(problem, [f[3] for f in failures], rng)
        if edge is not None:
            return edge
        return Outcome("wrong", worst.error / worst.scale, "", worst, v, line.u)
    resolved = [
        settings.confidence * e.error / (e.natural if e.vanishes else e.scale) if e.scale else 0.0
        for e in equations
    ]
    if settings.rtol is not None:  # what was let through is no finer than its gap
        resolved = [max(r, e.discrepancy) for r, e in zip(resolved, equations)]
    if failed_lines == 1 or "undecided" in verdicts:
        bad = [e.reason for e, w in zip(equations, verdicts) if w != "right"] or ["noise"]
        undecided = [r for r, w in zip(resolved, verdicts) if w == "undecided"] or resolved
        # One direction out of two that resolves the gradient is an answer; the other met a rough spot.
        # Both sides exactly zero are none: where the outputs are rounding alone, that is chance.
        good = [r for r, w, e in zip(resolved, verdicts, equations) if w == "right" and e.scale]
        if failed_lines == 0 and good:
            return Outcome("right", max(good), max(set(bad), key=bad.count))
        denied = max((f[0] for f in failures), key=lambda e: e.discrepancy, default=None)
        return Outcome("undecided", max(undecided), max(set(bad), key=bad.count), denied)
    return Outcome("right", max(resolved))


def nonfinite_claim(problem: Problem, v: Array, g: Array, rng: np.random.Generator) -> Outcome:
    """Decide on a gradient that is not finite where the function is."""
    bad = np.flatnonzero(~np.isfinite(g))
    for i in rng.permutation(bad)[:4]:
        u = np.zeros_like(problem.x)
        u[i] = max(abs(problem.x[i]), 1.0) if problem.x[i] == 0 else abs(problem.x[i])
        slopes = slopes_along(problem, u)
        if slopes is None or diverges(problem, u, v):
            continue
        low, high, kinked = slopes.interval(v)
        if np.isfinite([low, high]).all():
            found = Equation(
                (low + high) / 2, float(g[i] * u[i]), 0.0, max(abs(low), abs(high), 1e-300), "nonfinite"
            )
            return Outcome("wrong", 0.0, "nonfinite", found, v, u, edge=kinked)
    return Outcome("undecided", reason="nonfinite")
