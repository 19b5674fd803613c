"""The gradient is wrong only somewhere: at an index, below a threshold, at zero, at ties.

Indices are asked before values. A region must be pure: every entry inside wrong, every entry outside
right, over the failing point and fresh ones.
"""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array

SLUG = "wrong-region"
RANK = 62
FRESH = 8


def relative_errors(evidence: Evidence, place: int) -> Array:
    """Give the largest relative error of each entry over the cotangents."""
    assert evidence.true is not None
    found = []
    for t, c in zip(evidence.true, evidence.claimed):
        a, b = evidence.shaped(t, place), evidence.shaped(c, place)
        found.append(np.abs(a - b) / np.maximum(np.maximum(np.abs(a), np.abs(b)), 1e-300))
    return np.asarray(np.maximum.reduce(found))


def unclear(evidence: Evidence, place: int) -> Array:
    """Mark entries so much smaller than the others that equality means nothing."""
    assert evidence.true is not None
    a, b = evidence.shaped(evidence.true[0], place), evidence.shaped(evidence.claimed[0], place)
    size = np.maximum(np.abs(a), np.abs(b))
    return np.asarray((a != b) & (size < 1e-4 * size.max(initial=0.0)))


def fresh(evidence: Evidence) -> list[Evidence]:
    """Gather evidence at wide points of the same shapes, once."""
    if evidence.fresh is None:
        evidence.fresh = _gather(evidence)
    return evidence.fresh


def _gather(evidence: Evidence) -> list[Evidence]:
    rng = evidence.settings.rng(79)
    x = evidence.problem.x
    found = []
    for i in range(3 * FRESH):
        if i % 3 == 0:
            moved = rng.choice([-1.0, 1.0], x.size) * 10.0 ** rng.uniform(-1.5, 1, x.size)
        elif i % 3 == 1:
            moved = x * rng.uniform(0.3, 1.7, x.size) + (x == 0) * rng.normal(size=x.size)
        else:
            moved = rng.permutation(x)
            moved = np.where(moved == 0, rng.normal(size=x.size), moved * rng.uniform(0.9, 1.1, x.size))
        other = evidence.moved(moved)
        if other is None:
            continue
        found.append(other)
        if len(found) >= FRESH or (len(found) >= 3 and x.size > 400):
            break
    return found


def indexed(mask: Array) -> str | None:
    """Describe a mask that is a slab of one axis or a triangle, or give None."""
    for axis in range(mask.ndim):
        rest = tuple(a for a in range(mask.ndim) if a != axis)
        line = np.asarray(mask.any(rest) if rest else mask)
        slab = np.broadcast_to(line.reshape([-1 if a == axis else 1 for a in range(mask.ndim)]), mask.shape)
        wrong = np.flatnonzero(line)
        if not np.array_equal(slab, mask) or not 0 < len(wrong) < len(line):
            continue
        if len(wrong) == 1:
            i = int(wrong[0])
            which = "the first" if i == 0 else "the last" if i == len(line) - 1 else f"index {i}"
            return f"{which} of axis {axis}"
        if (np.diff(wrong) == 1).all():
            return f"indices {wrong[0]} to {wrong[-1]} of axis {axis}"
        if len({int(i) % 2 for i in wrong}) == 1 and len(wrong) >= len(line) // 2:
            return f"every second index of axis {axis}"
        if len(wrong) == 2 and wrong[0] == 0 and wrong[1] == len(line) - 1:
            return f"the first and the last of axis {axis}"
    if mask.ndim >= 2 and mask.shape[-1] == mask.shape[-2] and mask.shape[-1] > 1:
        n = mask.shape[-1]
        regions = {
            "the diagonal": np.eye(n, dtype=bool),
            "the part above the diagonal": np.triu(np.ones((n, n), bool), 1),
            "the part below the diagonal": np.tril(np.ones((n, n), bool), -1),
            "everything but the diagonal": ~np.eye(n, dtype=bool),
        }
        for said, region in regions.items():
            if np.array_equal(mask, np.broadcast_to(region, mask.shape)):
                return said
    return None


def stump(feature: Array, wrong: Array) -> tuple[str, float, float] | None:
    """Find the threshold or the interval that separates wrong from right without exception."""
    if not wrong.any() or wrong.all():
        return None
    low, high = feature[wrong].min(), feature[wrong].max()
    inside = (feature >= low) & (feature <= high)
    if (inside & ~wrong).any():
        return None
    right = feature[~wrong]
    below, above = right[right < low], right[right > high]
    start = (below.max() + low) / 2 if below.size else -np.inf
    stop = (above.min() + high) / 2 if above.size else np.inf
    if low == high:
        return "=", float(low), float(low)
    return (
        "in",
        _round_between(below.max() if below.size else -np.inf, low, start),
        _round_between(high, above.min() if above.size else np.inf, stop),
    )


def _round_between(a: float, b: float, fallback: float) -> float:
    if not np.isfinite(fallback):
        return float(fallback)
    for digits in range(6):
        value = round(fallback, digits)
        if a <= value <= b:
            return float(value) + 0.0
    return float(fallback)


def described(name: str, found: tuple[str, float, float]) -> str:
    """Write a region as an inequality."""
    kind, low, high = found
    if kind == "=":
        return f"{name} = {low + 0.0:g}"
    if np.isinf(low):
        return f"{name} < {high:g}"
    if np.isinf(high):
        return f"{name} > {low:g}"
    return f"{low:g} < {name} < {high:g}"


def tied(x: Array) -> Array:
    """Mark entries that share their value with another."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.reshape(np.asarray(counts[inverse.reshape(-1)] > 1), x.shape)


def search(evidence: Evidence) -> Match | None:
    """Ask indices, then zero and ties, then thresholds."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or not wrong:
        return None
    others = fresh(evidence)
    right_elsewhere = len(others) >= 3 and not any(o.wrong_inputs for o in others)
    regions = []
    for p in wrong:
        said = _region(evidence, others, p, right_elsewhere)
        if said:
            regions.append((evidence.name(p), said))
    if len(regions) == len(wrong):
        said = regions[0][1]
        return Match(
            SLUG,
            f"the gradient of {listed([n for n, _ in regions])} is wrong only at {said}",
            f"look at the branch or the index that handles {said}",
            said,
        )
    return None


def _region(evidence: Evidence, others: list[Evidence], p: int, right_elsewhere: bool) -> str | None:
    mask = evidence.wrong_entries(p)
    x = evidence.shaped(evidence.problem.x, p)
    if np.iscomplexobj(x):
        return None
    if right_elsewhere:
        if mask.any() and (x[mask] == 0).all() and ((x == 0) == mask).all():
            return f"{evidence.name(p)} = 0"
        ties = tied(x)
        if mask.any() and ties[mask].all() and ties.any():
            return "ties (equal entries)"
        if mask.any() and len(np.unique(x[mask])) == 1:
            return f"{evidence.name(p)} = {x[mask][0]:g}"
        return None
    if not others:
        return None
    masks = [mask, *(o.wrong_entries(p) for o in others)]
    if mask.any() and not mask.all():
        said = indexed(mask)
        if said and sum(np.array_equal(m, mask) for m in masks) >= len(masks) - 1:
            return said
    pooled = np.concatenate([m.reshape(-1) for m in masks])
    clear = ~np.concatenate([unclear(e, p).reshape(-1) for e in (evidence, *others)]) | pooled
    pooled = pooled[clear]
    if not 2 <= pooled.sum() <= pooled.size - 2:
        return None
    # An error that fades out is no branch: it only seems to end where it drops below the tolerance.
    sizes = np.concatenate([relative_errors(e, p).reshape(-1) for e in (evidence, *others)])[clear]
    if sizes[pooled].min() < 1e-2:
        return None
    fits = [(name, stump(values[clear], pooled)) for name, values in _features(evidence, others, p)]
    kept = [(name, found) for name, found in fits if found is not None]
    if not kept:
        return None
    # A single bound is a better reason than an interval, and a value of an input than one of an output.
    return described(*min(kept, key=lambda fit: ("output" in fit[0], np.isfinite(fit[1][1:]).sum())))


def _features(evidence: Evidence, others: list[Evidence], p: int) -> list[tuple[str, Array]]:
    every = [evidence, *others]
    name = evidence.name(p)
    xs = [e.shaped(e.problem.x, p) for e in every]
    flat = np.concatenate([x.reshape(-1) for x in xs])
    found = [(name, flat), (f"|{name}|", np.abs(flat))]
    shape = xs[0].shape
    for q in range(evidence.count):
        if q != p and evidence.array(q).shape == shape and not np.iscomplexobj(evidence.array(q)):
            b = np.concatenate([e.shaped(e.problem.x, q).reshape(-1) for e in every])
            found += [
                (evidence.name(q), b),
                (f"{name} - {evidence.name(q)}", flat - b),
                (f"|{name} - {evidence.name(q)}|", np.abs(flat - b)),
                (f"|{evidence.name(q)}|", np.abs(b)),
                (f"|{name}| - |{evidence.name(q)}|", np.abs(flat) - np.abs(b)),
            ]
    for k, y in enumerate(evidence.outputs):
        if y.shape == shape and not np.iscomplexobj(y):
            label = "the output" if len(evidence.outputs) == 1 else f"output {k}"
            found.append((label, np.concatenate([e.outputs[k].reshape(-1) for e in every])))
    return found
