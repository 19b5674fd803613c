"""A term is missing in a denominator: d/x where d/(1 + x) belongs."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence

SLUG = "missing-term"
RANK = 72
CONFIRM = True


def search(evidence: Evidence) -> Match | None:
    """Compare the reciprocals of an elementwise function: dy/truth − dy/claim is one number everywhere."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or len(wrong) != 1 or evidence.problem.y.size != evidence.array(wrong[0]).size:
        return None
    place = wrong[0]
    if np.iscomplexobj(evidence.array(place)) or evidence.array(place).size < 2:
        return None
    missing = []
    for v, t, c in zip(evidence.vs, evidence.true, evidence.claimed):
        true, claimed = evidence.part(t, place), evidence.part(c, place)
        if not (true.all() and claimed.all()):
            return None
        # For an elementwise function the gradient is the cotangent times a slope, entry by entry.
        missing.append(v / true - v / claimed)
    flat = np.concatenate(missing)
    middle = float(np.median(flat))
    term = round(2 * middle) / 2  # halves and whole numbers are what people forget
    if not term or not np.allclose(flat, term, rtol=1e3 * evidence.tolerance, atol=0.0):
        return None
    name = listed([evidence.name(place)])
    return Match(
        SLUG,
        f"a term is missing in the denominator of the gradient of {name}: {term:+g}",
        f"add {term:+g} to the denominator",
        name,
    )
