"""The two sides of a branch are exchanged: zero exactly where the derivative is not."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.causes.wrong_region import fresh
from pullback.checker.evidence import Evidence

SLUG = "wrong-region"
RANK = 58


def search(evidence: Evidence) -> Match | None:
    """Compare where truth and claim are zero, over fresh points too."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or not wrong:
        return None
    every = [evidence, *fresh(evidence)]
    for p in wrong:
        t = np.concatenate([e.part(g, p) for e in every for g in e.true or []])
        c = np.concatenate([e.part(g, p) for e in every for g in e.claimed])
        if not ((t == 0) == (c != 0)).all() or (t == 0).all() or (t != 0).all():
            return None
    names = listed([evidence.name(p) for p in wrong])
    return Match(
        SLUG,
        f"the branch in the gradient of {names} is inverted: it is zero exactly where the derivative is not",
        "exchange the two sides of the condition",
        names,
    )
