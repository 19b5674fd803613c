"""A gradient that is declared as different, and is not: the declaration excuses nothing.

It is said only of what was declared from outside, and only if no point and no upstream gradient of any size
shows a difference: what is clipped differs for large ones alone.
"""

from __future__ import annotations

import numpy as np

from pullback.checker.directions import signed
from pullback.checker.examine import examine
from pullback.checker.finding import Finding
from pullback.checker.points import Point, own_points
from pullback.checker.probes.linearity import nonlinear
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.view.subject import Subject

POINTS = 6
SIZES = (1e-6, 1e6)


def needless(subject: Subject, settings: Settings) -> list[Finding]:
    """Say that a declared gradient is the derivative, if it is."""
    if not subject.declared:
        return []
    try:
        right = _right_everywhere(subject, settings)
    except Exception:  # a user's function may refuse a point in any way it likes
        return []
    if not right:
        return []
    said = f"{subject.declared} says that its gradient is {subject.intent}, and it is the derivative"
    return [Finding("derivative", "note", said, reason="needless")]


def _right_everywhere(subject: Subject, settings: Settings) -> bool:
    problem = Problem.of(subject)
    if nonlinear(problem, settings.rng(85)) is not None:
        return False
    v = signed(settings.rng(86), problem.y.size)
    gradient = problem.gradient(v)
    for size in SIZES:
        if not np.allclose(problem.gradient(size * v) / size, gradient, rtol=1e-3, atol=0):
            return False
    points = [Point("given", subject.inputs)]
    if settings.own_points:
        for point, _ in zip(own_points(subject, settings.rng(87)), range(POINTS)):
            points.append(point)
    verdicts = [
        examine(subject, point, settings.rng(88, i), settings, own=i > 0).verdict
        for i, point in enumerate(points)
    ]
    return verdicts[0] == "right" and "wrong" not in verdicts
