"""The gradient of an input is zero everywhere, and its derivative is not."""

from __future__ import annotations

from pullback.check.cause import Match, listed
from pullback.check.evidence import Evidence

SLUG = "missing-term"
RANK = 38


def search(evidence: Evidence) -> Match | None:
    """Look for claims that are zero here and elsewhere."""
    wrong = evidence.wrong_inputs
    other = evidence.elsewhere()
    if evidence.true is None or not wrong or evidence.order == 2:
        return None
    every = [*evidence.claimed, *(other.claimed if other is not None else [])]
    if any(evidence.part(c, p).any() for p in wrong for c in every):
        return None
    names = listed([evidence.name(p) for p in wrong])
    return Match(SLUG, f"the gradient of {names} is zero: its derivative is missing", f"return the gradient of {names}", names)
