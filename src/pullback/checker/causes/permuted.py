"""Entries of the gradient land in the wrong places."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array

SLUG = "permuted"
RANK = 59


def search(evidence: Evidence) -> Match | None:
    """Look for one permutation that carries truth to claim, or for two selections of `dy` that differ."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or not wrong:
        return None
    names = listed([evidence.name(p) for p in wrong])
    edit = "check the order of the indices: each entry of `dy` goes back to where its output was taken from"
    if all(moved(evidence, p) for p in wrong):
        return Match(SLUG, f"the gradient of {names} has the right entries in the wrong places", edit, names)
    both = evidence.jacobians if evidence.every_row(unchanged) else None
    if both is not None and all(selects(j) for j in both) and np.array_equal(both[0].any(0), both[1].any(0)):
        return Match(SLUG, f"the gradient of {names} takes `dy` from the wrong indices", edit, names)
    return None


def moved(evidence: Evidence, place: int) -> bool:
    """Tell whether the claim is a fixed permutation of the truth."""
    assert evidence.true is not None
    t = np.stack([evidence.part(g, place) for g in evidence.true])
    c = np.stack([evidence.part(g, place) for g in evidence.claimed])
    if t.shape[1] < 3 or len(np.unique(t[0])) < t.shape[1]:
        return False
    return all(evidence.close(np.sort(a), np.sort(b), 10) for a, b in zip(t, c)) and evidence.close(
        t[1:, np.argsort(t[0])], c[1:, np.argsort(c[0])], 10
    )


def selects(jacobian: Array) -> bool:
    """Tell whether every input entry takes at most one entry of the cotangent, unchanged."""
    return unchanged(jacobian) and bool(((np.abs(jacobian) > 1e-9).sum(0) <= 1).all())


def unchanged(entries: Array) -> bool:
    """Tell whether entries of a Jacobian are zero or one."""
    return bool(np.allclose(entries[np.abs(entries) > 1e-9], 1, atol=1e-6))
