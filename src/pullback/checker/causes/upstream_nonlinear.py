"""The gradient is not linear in the upstream gradient: squared, clipped, divided by, its sign taken."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match
from pullback.checker.evidence import Evidence
from pullback.checker.probes.linearity import broken_at

SLUG = "upstream-nonlinear"
RANK = 30
EXPLAINS = ("derivative", "linearity")


def search(evidence: Evidence) -> Match | None:
    """Compare the claim for 2a − 3b with 2·claim(a) − 3·claim(b)."""
    a, b = evidence.vs[:2]
    ga, gb = evidence.claimed[:2]
    mixed = evidence.problem.gradient(2 * a - 3 * b)
    if np.isfinite([ga, gb, mixed]).all() and not np.isfinite(evidence.problem.gradient(0 * a)).all():
        said = "the gradient is not finite for `dy` = 0: something is divided by `dy`"
        return Match(SLUG, said, "use `dy` once and linearly, as a factor of every term")
    if evidence.close(mixed, 2 * ga - 3 * gb, 100):
        broken = broken_at(evidence.subject, evidence.problem, evidence.settings)
        if broken is None or broken.at_zero:
            return None
    doubled = evidence.problem.gradient(2 * a)
    how = "is not linear in `dy`"
    if evidence.close(doubled, 4 * ga, 10):
        how = "grows with the square of `dy`"
    elif evidence.close(doubled, ga, 10):
        how = "uses only the sign or the direction of `dy`"
    return Match(
        SLUG,
        f"the gradient {how}: for `2a - 3b` it is not twice that for `a` less three times that for `b`",
        'use `dy` once and linearly, as a factor; if it is changed on purpose, declare `differs="why"`',
    )
