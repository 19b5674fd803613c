"""The gradient has the wrong sign."""

from __future__ import annotations

from pullback.checker.cause import Match, listed
from pullback.checker.causes.constant_factor import ratio_of
from pullback.checker.evidence import Evidence

SLUG = "sign"
RANK = 40


def search(evidence: Evidence) -> Match | None:
    """Fit the factor −1."""
    if evidence.true is None or not evidence.wrong_inputs:
        return None
    ratios = [ratio_of(evidence, p) for p in evidence.wrong_inputs]
    if any(r is None or abs(r + 1) > 1e-5 for r in ratios):
        return None
    # Equal inputs can make another mistake look like a sign; another point tells.
    other = evidence.elsewhere()
    if other is not None:
        again = [ratio_of(other, p) for p in evidence.wrong_inputs]
        if not other.wrong_inputs or any(r is None or abs(r + 1) > 1e-4 for r in again):
            return None
    names = listed([evidence.name(p) for p in evidence.wrong_inputs])
    return Match(
        SLUG, f"the gradient of {names} has the wrong sign", f"negate the gradient of {names}", names
    )
