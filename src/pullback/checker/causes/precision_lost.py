"""The formula is right, but computed in a coarser dtype than the inputs have."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match
from pullback.checker.causes.constant_factor import ratio_of
from pullback.checker.evidence import Evidence

SLUG = "precision-lost"
RANK = 5


def search(evidence: Evidence) -> Match | None:
    """Look for small scattered errors, and for gradients that a coarser dtype holds exactly."""
    if evidence.true is None or evidence.problem.unit > 1e-12:
        return None
    t, c = np.stack(evidence.true), np.stack(evidence.claimed)
    used = np.abs(t) > 1e-3 * np.abs(t).max()
    relative = np.abs(c - t)[used] / np.abs(t[used])
    if not relative.size or not (np.isfinite(c).all() and np.isfinite(t).all()):
        return None
    # Rounding leaves a zero where it is: a slope where there is none is another formula.
    overall = float(np.abs(c - t).max() / np.abs(t).max())
    if (np.abs(c[t == 0]) > evidence.problem.unit * np.abs(t).max()).any():
        return None
    for name, kind, limit in (("float16", np.float16, 2e-2), ("float32", np.float32, 1e-4)):
        with np.errstate(over="ignore"):
            held = np.array_equal(c.astype(kind).astype(float), c)
        if held and max(relative.max(), overall) < limit:
            return _match(evidence, name)
    bits = -np.log2(np.median(relative) + 1e-300)
    scattered = all(abs((ratio_of(evidence, p) or 1) - 1) < 1e-7 for p in evidence.wrong_inputs)
    if scattered and max(relative.max(), overall) < 3e-6 and bits > 18:
        return _match(evidence, "float32")
    return None


def _match(evidence: Evidence, name: str) -> Match:
    return Match(
        SLUG,
        f"the gradient has only the precision of {name}: it is right, but rounded on the way",
        f"compute the gradient in {evidence.problem.domain.dtypes[0].name}; look for a cast or a "
        f"constant of type {name}",
    )
