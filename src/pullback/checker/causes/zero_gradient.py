"""The gradient of an input is zero everywhere, and its derivative is not."""

from __future__ import annotations

from pullback.checker.cause import Match, listed
from pullback.checker.causes.wrong_region import fresh
from pullback.checker.evidence import Evidence

SLUG = "missing-term"
RANK = 38


def search(evidence: Evidence) -> Match | None:
    """Look for claims that are zero here and elsewhere."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or not wrong or evidence.order == 2:
        return None
    if any(evidence.part(c, p).any() for p in wrong for c in evidence.claimed):
        return None
    if any(other.part(c, p).any() for p in wrong for other in fresh(evidence) for c in other.claimed):
        return None
    names = listed([evidence.name(p) for p in wrong])
    return Match(
        SLUG,
        f"the gradient of {names} is zero: its derivative is missing",
        f"return the gradient of {names}",
        names,
    )


def denied(found: Match, evidence: Evidence) -> bool:
    """Tell whether a gradient that was zero elsewhere is not zero here, whatever it should be."""
    named = [p for p in range(evidence.count) if f"`{evidence.name(p)}`" in found.where]
    return any(evidence.part(c, p).any() for p in named for c in evidence.claimed)
