"""The gradient is NaN or infinite where the derivative exists."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence

SLUG = "nonfinite"
RANK = 1


def search(evidence: Evidence) -> Match | None:
    """Say where the gradient is not finite."""
    bad = ~np.isfinite(evidence.claimed[0])
    if not bad.any():
        return None
    places = [p for p in range(evidence.count) if evidence.part(bad, p).any()]
    x = evidence.problem.x[bad]
    where = listed([evidence.name(p) for p in places])
    values = (
        "0" if (x == 0).all() else f"{x[0]:.6g}" if (x == x[0]).all() else f"{x.min():.6g} … {x.max():.6g}"
    )
    return Match(
        SLUG,
        f"the gradient of {where} is not finite at {values}, where the function and its slope are",
        "guard the argument before the singular operation (a `where` around its result alone "
        "still multiplies 0 by inf)",
        where,
    )
