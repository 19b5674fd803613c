"""Is the pullback linear in the cotangent, and zero for zero?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pullback.checker.directions import signed
from pullback.checker.equation import jitter
from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.checker.space import SINGLE
from pullback.view.subject import Array, Subject


@probe(rank=40)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Compare g(2a − 3b) with 2g(a) − 3g(b), at the given point."""
    if not any(subject.differentiable):
        return []
    try:
        problem = Problem.of(subject)
        broken = broken_at(subject, problem, settings)
    except Exception:  # the contract probe says so
        return []
    if broken is None:
        return []
    declared = subject.intent.kind == "differs"
    return [
        Finding(
            "linearity",
            "note" if declared else "wrong",
            broken.sentence + (" (declared as different on purpose)" if declared else ""),
            inputs=subject.inputs,
            cotangents=problem.codomain.unpack(broken.cotangent),
            edit="use `dy` once and linearly, as a factor of every term",
        )
    ]


class Broken(NamedTuple):
    """How linearity fails, and a cotangent that shows it."""

    sentence: str
    cotangent: Array
    at_zero: bool  # the gradient is not zero for zero


def broken_at(subject: Subject, problem: Problem, settings: Settings) -> Broken | None:
    """Ask the question of this probe: for the causes, too."""
    # The framework's own operations may lose more digits than rounding does.
    loose = 0.0 if subject.is_rule else 16 * settings.demanded(problem.unit)
    return nonlinear(problem, settings.rng(7), max(settings.rtol or 0.0, loose))


def nonlinear(problem: Problem, rng: np.random.Generator, accuracy: float = 0.0) -> Broken | None:
    """Say how linearity fails, or None."""
    if not problem.x.size or not np.isfinite(problem.y).all():
        return None
    # Powers of two times a common pattern: the combination is exact in every dtype.
    a, b = (np.round(signed(rng, problem.y.size) * 8) / 8 for _ in range(2))
    ga, gb, mixed = problem.gradient(a), problem.gradient(b), problem.gradient(2 * a - 3 * b)
    zero = problem.gradient(np.zeros_like(a))
    if not all(np.isfinite(g).all() for g in (ga, gb, mixed)):
        return None
    if not np.isfinite(zero).all():  # it divides by `dy`
        return Broken("the gradient is not finite for a zero upstream gradient", np.zeros_like(a), False)
    size = float(max(np.abs(ga).max(initial=0), np.abs(gb).max(initial=0)))
    # A gradient that was computed in float32 has the digits of float32, whatever its dtype is.
    with np.errstate(over="ignore"):
        coarse = all(np.array_equal(g, g.astype(np.float32)) for g in (ga, gb, mixed))
    unit = max(problem.unit, SINGLE) if coarse else problem.unit
    rounding = max(64 * unit * np.sqrt(problem.y.size), accuracy / 16)
    tolerance = rounding * max(size, 1e-300)
    gap = np.abs(mixed - (2 * ga - 3 * gb)).max(initial=0)
    if max(np.abs(zero).max(initial=0), gap / 16) <= tolerance:
        return None
    # A gradient that is zero but for rounding is as large as the rounding of what cancels in it.
    tolerance = max(tolerance, 8 * jitter(problem, (a, b, 2 * a - 3 * b), rng))
    if np.abs(zero).max(initial=0) > tolerance:
        return Broken("the gradient is not zero for a zero upstream gradient", a, True)
    if gap > 16 * tolerance:
        return Broken("the gradient is not linear in the upstream gradient", a, False)
    return None
