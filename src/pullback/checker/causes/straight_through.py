"""The function is piecewise constant and its gradient is passed straight through."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.causes.wrong_region import fresh
from pullback.checker.evidence import Evidence

SLUG = "straight-through"
RANK = 45


def search(evidence: Evidence) -> Match | None:
    """Recognise a zero derivative beside a gradient that is `dy`, or `dy` masked."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or not wrong:
        return None
    every = [evidence, *fresh(evidence)]
    for p in wrong:
        if any(np.median(np.abs(evidence.part(t, p))) > 0 for t in evidence.true):
            return None
        for e in every:
            for v, t, c in zip(e.vs, e.true or [], e.claimed):
                true, claimed = e.part(t, p), e.part(c, p)
                if v.shape != claimed.shape or not np.all((claimed == v) | (claimed == 0)):
                    return None
                # Differences of a step function may straddle a step, but never find the slope of `dy`.
                if ((np.abs(true - claimed) <= 1e-6 * np.abs(claimed)) & (claimed != 0)).any():
                    return None
    names = listed([evidence.name(p) for p in wrong])
    return Match(
        SLUG,
        "the function is constant around here (its derivative is 0) and the gradient is `dy` passed through",
        'if that is meant, declare it: `@pb.custom_gradient(differs="straight-through")`',
        names,
    )
