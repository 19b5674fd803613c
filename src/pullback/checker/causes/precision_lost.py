"""The formula is right, but computed in a coarser dtype than the inputs have."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match
from pullback.checker.causes.constant_factor import ratio_of
from pullback.checker.directions import signed
from pullback.checker.drift import loops
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array

SLUG = "precision-lost"
RANK = 5
CONSTANT = 2e-7  # of the gradient: some roundings of a constant to float32
MORE = 32  # times that, which is no rounding of a constant
SCALES = (2.0**-6, 2.0**6)  # of a point, where it is asked
BESIDE = 2.0**-12  # of a value: many roundings to float32, and nothing to a smooth error


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
    if scattered and max(relative.max(), overall) < 3e-6 and bits > 18 and not _steady(evidence, c - t):
        return _match(evidence, "float32")
    return None


def _steady(evidence: Evidence, error: Array) -> bool:
    """Tell whether the error is the same beside the point: what an approximation leaves, and no rounding."""
    problem = evidence.problem
    little = np.abs(error).max() <= CONSTANT * np.abs(np.stack(evidence.true or [])).max()
    if little and not loops(evidence.subject):
        # A constant that was rounded leaves as little everywhere: a term that was added does not.
        found = [_at(evidence, problem.x * scale) for scale in SCALES]
        return any(np.abs(c - t).max() > MORE * CONSTANT * np.abs(t).max() for c, t in filter(None, found))
    beside = _at(evidence, problem.x * (1 + BESIDE * signed(evidence.settings.rng(80), problem.x.size)))
    if beside is None:
        return False
    moved = beside[0] - beside[1]
    return bool(np.linalg.norm(moved - error) < 0.1 * np.linalg.norm(error))


def _at(evidence: Evidence, x: Array) -> tuple[Array, Array] | None:
    """Give claim and truth at another point, where both can be had."""
    inputs = evidence.problem.with_x(x)
    pairs = [(evidence.claimed_at(inputs, v), evidence.true_at(inputs, v)) for v in evidence.vs]
    claimed, true = ([part for part in parts if part is not None] for parts in zip(*pairs))
    if len(claimed) < len(pairs) or len(true) < len(pairs) or not np.isfinite(claimed).all():
        return None
    return np.stack(claimed), np.stack(true)


def _match(evidence: Evidence, name: str) -> Match:
    return Match(
        SLUG,
        f"the gradient has only the precision of {name}: it is right, but rounded on the way",
        f"compute the gradient in {evidence.problem.domain.dtypes[0].name}; look for a cast or a "
        f"constant of type {name}",
    )
