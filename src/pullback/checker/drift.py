"""Loops that are exact where they are used, and less so far away: integrators, fixed points, series.

On the way from the given point to one where the gradient fails, a wrong branch goes wrong at once, and a term
that the given point hides, such as one with a state of zeros, in the first steps. The error of a loop begins
later, and out of nothing: a step that is too long there, a fixed point that is not reached.
"""

from __future__ import annotations

import numpy as np

from pullback.checker.equation import Outcome
from pullback.checker.numeric import derivative_test
from pullback.checker.points import Point
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.view.subject import Array, Subject

STEPS = 24  # of one operation
HALVINGS = 16
EARLY = 0.05  # of the given values: what begins before was there from the start
FAR = (2.0, 8.0)  # times the given values
FAINT = 0.1  # of the error at the point: what begins with more is a branch


def loops(subject: Subject) -> bool:
    """Tell whether a function repeats an operation as a loop does, and no formula."""
    return subject.repeats is not None and subject.repeats(subject.inputs) >= STEPS


def drifts(subject: Subject, point: Point, failure: Outcome, settings: Settings) -> bool:
    """Tell whether a failure at a point of the checker's own may be the inexactness of a loop."""
    if point.resized or not loops(subject):
        return False
    given = Problem.of(subject)
    # On the way to the point it may end in another cycle, all at once; larger values take it there slowly.
    moved = None if failure.direction is None else failure.direction != 0  # what the failure was seen by
    ends = [(Problem.of(subject.at(point.inputs)).x, moved), *((far * given.x, None) for far in FAR)]
    return any(_late(subject, given, end - given.x, settings, support) for end, support in ends)


def _late(
    subject: Subject, given: Problem, way: Array, settings: Settings, support: Array | None = None
) -> bool:
    """Tell whether an error begins on the way, neither at once nor with its full size."""

    def error(part: float) -> float:
        moved = Problem.of(subject.at(given.with_x(given.x + part * way)))
        found = derivative_test(moved, settings.rng(25), settings, support=support)
        return found.discrepancy if found.verdict == "wrong" else 0.0

    early = EARLY * np.linalg.norm(given.x) / max(float(np.linalg.norm(way)), np.finfo(float).tiny)
    right, wrong, begun = 0.0, 1.0, error(1.0)
    faint = FAINT * begun
    for _ in range(HALVINGS if begun else 0):
        if wrong <= early:  # it was there from the start
            return False
        if right > early and begun < faint:
            return True
        middle = (right + wrong) / 2
        found = error(middle)
        if found:
            wrong, begun = middle, found
        else:
            right = middle
    return bool(right > early and begun < faint)
