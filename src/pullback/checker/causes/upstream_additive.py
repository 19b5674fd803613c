"""A term of the gradient is not multiplied by the upstream gradient."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.checker.probes.linearity import broken_at

SLUG = "upstream-additive"
RANK = 20
EXPLAINS = ("derivative", "linearity")


def search(evidence: Evidence) -> Match | None:
    """Ask for the gradient at a zero cotangent: it must be zero."""
    zero = evidence.problem.gradient(np.zeros_like(evidence.vs[0]))
    if not np.isfinite(zero).all():
        return None
    found = [p for p in range(evidence.count) if evidence.part(zero, p).any()]
    size = max(float(np.abs(c).max()) for c in evidence.claimed)
    if not found:
        return None
    if float(np.abs(zero).max()) <= 10 * evidence.tolerance * size:  # that may still be more than rounding
        broken = broken_at(evidence.subject, evidence.problem, evidence.settings)
        if broken is None or not broken.at_zero:
            return None
    names = listed([evidence.name(p) for p in found])
    return Match(
        SLUG,
        f"the gradient of {names} is not zero for `dy` = 0: a term is added without being multiplied by `dy`",
        "multiply every term by `dy`; look for missing brackets, as in `dy*1 - y*y` for `dy*(1 - y*y)`",
        names,
    )
