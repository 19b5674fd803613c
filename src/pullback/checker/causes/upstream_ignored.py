"""The gradient does not depend on the upstream gradient."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence

SLUG = "upstream-ignored"
RANK = 10
EXPLAINS = ("derivative", "linearity")


def search(evidence: Evidence) -> Match | None:
    """Compare the claims for different cotangents: they are the same where the upstream is ignored."""
    first, *others = evidence.claimed
    ignoring = []
    for place in evidence.wrong_inputs or range(evidence.count):
        a = evidence.part(first, place)
        if (
            a.any()
            and np.isfinite(a).all()
            and all(np.array_equal(a, evidence.part(o, place)) for o in others)
        ):
            ignoring.append(evidence.name(place))
    if not ignoring or len(ignoring) < len(evidence.wrong_inputs):
        return None
    return Match(
        SLUG,
        f"the gradient of {listed(ignoring)} does not use the upstream gradient: it is the same "
        "for every `dy`",
        "multiply by `dy`: a pullback returns dy · ∂y/∂x, not ∂y/∂x alone",
        listed(ignoring),
    )
