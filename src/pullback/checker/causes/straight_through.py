"""The function is piecewise constant and its gradient is passed straight through."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match
from pullback.checker.causes.wrong_region import fresh
from pullback.checker.evidence import Evidence

SLUG = "straight-through"
RANK = 45


def search(evidence: Evidence) -> Match | None:
    """Recognise a zero derivative beside a gradient that is `dy`, or `dy` masked."""
    if evidence.true is None or any(np.median(np.abs(t)) > 0 for t in evidence.true):
        return None
    if evidence.vs[0].shape != evidence.claimed[0].shape:
        return None
    if not all(np.all((c == v) | (c == 0)) for v, c in zip(evidence.vs, evidence.claimed)):
        return None
    # Differences of a step function may straddle a step, but they never find the slope of `dy` itself.
    for other in fresh(evidence):
        for t, c in zip(other.true or [], other.claimed):
            if ((np.abs(t - c) <= 1e-6 * np.abs(c)) & (c != 0)).any():
                return None
    return Match(
        SLUG,
        "the function is constant around here (its derivative is 0) and the gradient is `dy` passed through",
        'if that is meant, declare it: `@pb.custom_gradient(differs="straight-through")`',
    )
