"""The gradient is wrong at this point and right at others: a branch that only this point takes."""

from __future__ import annotations

from pullback.checker.cause import Match, listed
from pullback.checker.causes.wrong_region import fresh
from pullback.checker.evidence import Evidence

SLUG = "wrong-region"
RANK = 100


def search(evidence: Evidence) -> Match | None:
    """Say at least that the gradient is right elsewhere."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or not wrong:
        return None
    others = fresh(evidence)
    if len(others) < 3 or any(o.wrong_inputs for o in others):
        return None
    names = listed([evidence.name(p) for p in wrong])
    return Match(
        SLUG,
        f"the gradient of {names} is wrong at this point and right at {len(others)} others",
        "look at the branch that this point takes",
        "special points",
    )
