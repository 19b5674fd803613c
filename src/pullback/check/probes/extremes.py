"""Does the gradient stay finite and right where plain autodiff does not?"""

from __future__ import annotations

import numpy as np

from pullback.check.directions import signed
from pullback.check.finding import Finding
from pullback.check.numeric import derivative_test
from pullback.check.oracle import body_gradient
from pullback.check.points import own_points
from pullback.check.problem import Problem
from pullback.check.settings import Settings
from pullback.check.subject import Subject

RANK = 120
CAPABILITY = True
RUNS_SHIPPED = True


def probe(subject: Subject, settings: Settings) -> list[Finding]:
    """Look at extreme points for a rule that is right where autodiff is not."""
    if subject.body_pullback is None or subject.intent.kind == "differs" or not settings.own_points:
        return []
    for point in own_points(subject, settings.rng(5)):
        if not point.extreme:
            continue
        try:
            problem = Problem.of(subject.at(point.inputs))
            v = signed(settings.rng(18), problem.y.size)
            plain, claimed = body_gradient(subject, problem, v), problem.gradient(v)
        except Exception:  # neither need exist at a point nobody asked for
            continue
        if plain is None or np.isfinite(plain).all() or not np.isfinite(claimed).all():
            continue
        bad = problem.x[~np.isfinite(plain)]
        if derivative_test(problem, settings.rng(19), settings).verdict == "right":
            sentence = f"the rule is right and autodiff of the body is not: it is not finite at {bad[0]:.4g}"
            return [Finding("extremes", "note", sentence, reason="autodiff fails", point=point.label)]
    return []
