"""A term of the derivative is missing (or one too many)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array

SLUG = "missing-term"
RANK = 110


def features(evidence: Evidence, place: int, v: Array) -> Iterator[tuple[str, Array]]:
    """Build terms that a derivative of this input may have, in its shape."""
    x = evidence.shaped(evidence.problem.x, place)
    shapes = evidence.problem.codomain.shapes
    if len(shapes) != 1 or v.size != int(np.prod(shapes[0])) or np.iscomplexobj(x):
        return
    d, y, name = v.reshape(shapes[0]), evidence.outputs[0], evidence.name(place)
    others = [
        (evidence.name(p), evidence.shaped(evidence.problem.x, p))
        for p in range(evidence.count)
        if p != place
    ]
    own: list[tuple[str, Array]] = [("1", np.ones(())), (name, x), (f"{name}²", x * x)]
    if y.shape == x.shape:
        own += [("y", y), ("y²", y * y), (f"{name}·y", x * y)]
    with np.errstate(divide="ignore", invalid="ignore"):
        if y.shape == x.shape and x.ndim:
            centred = x - x.mean(-1, keepdims=True)
            own += [(f"y/{name}", y / x), (f"y²/{name}", y * y / x)]
            own += [(f"y/({name} - mean)", y / centred), (f"y²/({name} - mean)", y * y / centred)]
        elif y.ndim == 0:
            own += [
                (f"{name}·y", x * y),
                (f"{name}/sum({name}²)", x / (x * x).sum()),
                (f"{name}·y/sum({name}²)", x * y / (x * x).sum()),
            ]
    own += [(n, a) for n, a in others if a.shape == x.shape] + [
        (f"{n}²", a * a) for n, a in others if a.shape == x.shape
    ]
    yield from products(name, x, d, y, others)
    axes = range(d.ndim)
    for count in range(d.ndim + 1):
        for over in combinations(axes, count):
            inner: list[tuple[str, Array]] = [("dy", d)]
            if y.shape == x.shape:
                inner += [(f"dy·{name}", d * x), ("dy·y", d * y)]
            inner += [(f"dy·{n}", d * a) for n, a in others if a.shape == d.shape]
            if not over:
                inner = inner[:1]
            for said, value in inner:
                total = value.sum(over, keepdims=True) if over else value
                what = f"sum({said}, axis={list(over)})" if over else said
                for label, factor in own:
                    try:
                        term = np.broadcast_to(total * factor, x.shape)
                    except ValueError:
                        continue
                    yield (what if label == "1" else f"{label}·{what}"), term


def products(
    name: str, x: Array, d: Array, y: Array, others: list[tuple[str, Array]]
) -> Iterator[tuple[str, Array]]:
    """Build terms with matrix products, in the shape of the input."""
    if x.ndim == 2 and d.ndim == 2:
        for n, a in [(name, x), ("y", y), *[o for o in others if o[1].ndim == 2]]:
            for what, left, right in (
                (f"dy @ {n}ᵀ", d, a.T),
                (f"{n}ᵀ @ dy", a.T, d),
                (f"dy @ {n}", d, a),
                (f"{n} @ dy", a, d),
                (f"dyᵀ @ {n}", d.T, a),
                (f"{n} @ dyᵀ", a, d.T),
            ):
                if left.shape[1] == right.shape[0] and (left.shape[0], right.shape[1]) == x.shape:
                    yield what, left @ right
    if x.ndim == 1:
        for n, a in others:
            if a.ndim == 2 and d.size == 1:
                for what, matrix in ((n, a), (f"{n}ᵀ", a.T)):
                    if matrix.shape == (x.size, x.size):
                        yield f"dy·{what} @ {name}", d.reshape(()) * (matrix @ x)


def fitted(evidence: Evidence, place: int) -> dict[str, float]:
    """Give every single term that closes the gap, with its coefficient."""
    assert evidence.true is not None
    gaps = [
        evidence.shaped(t, place) - evidence.shaped(c, place) for t, c in zip(evidence.true, evidence.claimed)
    ]
    columns = [dict(features(evidence, place, v)) for v in evidence.vs]
    found = {}
    gap = np.concatenate([g.reshape(-1) for g in gaps])
    for label in columns[0]:
        term = np.concatenate([c[label].reshape(-1) for c in columns])
        norm = float(term @ term)
        if not norm or not np.isfinite(norm):
            continue
        k = float(term @ gap) / norm
        if k and evidence.close(k * term, gap, 100):
            found[label] = k
    return found


def search(evidence: Evidence) -> Match | None:
    """Fit single terms at two points; or see cross terms missing in the Jacobian."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or not wrong:
        return None
    # Where the derivative is zero the missing term would be the whole gradient, taken away.
    if any(not evidence.part(t, p).any() for p in wrong for t in evidence.true):
        return None
    names = listed([evidence.name(p) for p in wrong])
    for p in wrong:
        shapes = evidence.problem.codomain.shapes
        if shapes == (evidence.problem.domain.shapes[p],) and not np.iscomplexobj(evidence.array(p)):
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = evidence.problem.y / evidence.part(evidence.problem.x, p)
            if np.ptp(slope) and all(
                evidence.close(v * slope, evidence.part(c, p), 10)
                for v, c in zip(evidence.vs, evidence.claimed)
            ):
                return Match(
                    SLUG,
                    f"the gradient of {names} is dy·y/{evidence.name(p)}: of a product only one "
                    "factor is differentiated",
                    "add the term that differentiates the other factor",
                    names,
                )
    other = evidence.elsewhere()
    said = []
    if other is not None and other.true is not None:
        for p in wrong:
            again = fitted(other, p)
            held = {
                n: k
                for n, k in fitted(evidence, p).items()
                if n in again and abs(again[n] - k) <= 1e-3 * abs(k)
            }
            if held:
                label = min(held, key=len)
                said.append(f"{held[label]:+.4g}·{label}")
    if len(said) == len(wrong):
        return Match(
            SLUG, f"a term is missing in the gradient of {names}: {'; '.join(said)}", f"add {said[0]}", names
        )
    both = evidence.jacobians
    if both is None:
        return None
    true, claimed = both
    apart = np.abs(true - claimed) > 1e-5 * np.abs(true).max()
    absent = claimed == 0
    if apart.any() and (absent | ~apart).all() and (~absent).any():
        what = (
            "every output's dependence on the other entries"
            if _diagonal(claimed)
            else "some of the cross terms"
        )
        return Match(
            SLUG,
            f"a term is missing in the gradient of {names}: it leaves out {what}",
            "differentiate through every path: a reduction inside the function couples the entries",
            names,
        )
    # Right cross terms and a wrong diagonal: one of the two terms of a coupled derivative is wrong.
    if true.shape[0] == true.shape[1] and true.shape[0] > 1:
        eye = np.eye(len(true), dtype=bool)
        if apart[eye].all() and not apart[~eye].any() and (true[~eye] != 0).any():
            return Match(
                SLUG,
                f"the diagonal term of the gradient of {names} is wrong or missing, the cross "
                "terms are right",
                "",
                names,
            )
    return None


def _diagonal(jacobian: Array) -> bool:
    return jacobian.shape[0] == jacobian.shape[1] and bool((jacobian == np.diag(np.diag(jacobian))).all())
