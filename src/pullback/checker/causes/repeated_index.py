"""A repeated index overwrites instead of accumulating."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array
from pullback.view.words import Words

SLUG = "repeated-index"
RANK = 25


def distinct(indices: Array, rng: np.random.Generator, bound: int) -> Array | None:
    """Give other indices of the same shape without repeats, or None when there is no room."""
    if indices.size > bound:
        return None
    return np.asarray(rng.permutation(bound)[: indices.size].reshape(indices.shape), indices.dtype)


def search(evidence: Evidence) -> Match | None:
    """Make repeated integers distinct and see the gradient turn right; or see it in the Jacobian."""
    subject = evidence.subject
    if evidence.true is None or not evidence.wrong_inputs:
        return None
    for k, x in enumerate(subject.inputs):
        if x.dtype.kind not in "iu" or x.size < 2 or len(np.unique(x)) == x.size:
            continue
        bounds = sorted({d for a in subject.inputs for d in a.shape if d >= x.size}, reverse=True)
        for bound in bounds:
            other = distinct(x, evidence.rng, bound)
            if other is None:
                continue
            moved = tuple(other if i == k else a for i, a in enumerate(subject.inputs))
            try:
                apart = Evidence(subject.at(moved), evidence.settings)
            except Exception:  # the new indices may be out of range
                continue
            if apart.true is not None and not apart.wrong_inputs:
                return _match(f"where `{subject.names[k]}` repeats an index", evidence.subject.words)
    both = evidence.jacobians if evidence.every_row(_takes_one) else None
    if both is None:
        return None
    true, claimed = both
    shared = (true != 0).sum(0) > 1
    kept = (claimed != 0).sum(0) == 1
    same = np.abs(true - claimed) <= 1e-5 * np.abs(true).max()
    if shared.any() and (kept[shared]).all() and same[:, ~shared].all() and same[claimed != 0].all():
        return _match("where several outputs come from one entry", evidence.subject.words)
    return None


def _takes_one(row: Array) -> bool:
    """Tell whether an output takes one entry at most, unchanged."""
    return bool(np.count_nonzero(row) <= 1 and np.allclose(row[row != 0], 1))


def _match(where: str, words: Words) -> Match:
    return Match(
        SLUG,
        f"contributions are overwritten instead of added {where}",
        f"accumulate: {words.accumulate}, not an update",
        where,
    )
