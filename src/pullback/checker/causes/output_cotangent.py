"""The cotangent of one output is ignored or has a wrong factor, or two are exchanged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pullback.checker.cause import Match
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array

SLUG = "output-cotangent"
RANK = 47
CONFIRM = True


def search(evidence: Evidence) -> Match | None:
    """Fit a factor to the cotangent of each whole output, then exchange pairs."""
    space = evidence.problem.codomain
    count = len(space.shapes)
    # The outputs of the second order are gradients: nobody handed their cotangents over.
    if evidence.true is None or count < 2 or not evidence.wrong_inputs or evidence.order == 2:
        return None
    for k in range(count):
        r = factor(evidence, space.part(k))
        if r is None:
            continue
        if r == 0:
            return Match(
                SLUG,
                f"the cotangent of output {k} is ignored",
                f"add what the cotangent of output {k} contributes",
            )
        if abs(r + 1) < 1e-5:
            return Match(
                "sign",
                f"the contribution of output {k} has the wrong sign",
                f"negate what the cotangent of output {k} contributes",
            )
        return Match(
            "constant-factor",
            f"the contribution of output {k} is {r:.6g} times what it should be",
            f"divide it by {r:.6g}",
        )

    def fits(change: Callable[[Array], Array]) -> bool:
        return evidence.explains(lambda v: evidence.true_at(evidence.subject.inputs, change(v.copy())))

    for i in range(count):
        for j in range(i + 1, count):
            a, b = space.part(i), space.part(j)
            # A complex output of the same shape has twice the reals.
            if space.shapes[i] != space.shapes[j] or a.stop - a.start != b.stop - b.start:
                continue

            def swap(v: Array, a: slice = a, b: slice = b) -> Array:
                v[a], v[b] = v[b].copy(), v[a].copy()
                return v

            def copy(v: Array, a: slice = a, b: slice = b) -> Array:
                v[b] = v[a]
                return v

            if fits(swap):
                return Match(
                    SLUG,
                    f"the cotangents of outputs {i} and {j} are exchanged",
                    f"exchange the arguments {i} and {j} of `grad`",
                )
            if fits(copy):
                return Match(
                    SLUG,
                    f"the cotangent of output {i} is used for output {j} too",
                    f"use the cotangent of output {j}",
                )
    return None


def factor(evidence: Evidence, part: slice) -> float | None:
    """Fit claim = truth(others) + r · truth(this output), or give None."""
    rests, owns, claims = [], [], []
    for v, c in zip(evidence.vs, evidence.claimed):
        rest, own = v.copy(), np.zeros_like(v)
        rest[part], own[part] = 0, v[part]
        a, b = evidence.true_at(evidence.subject.inputs, rest), evidence.true_at(evidence.subject.inputs, own)
        if a is None or b is None:
            return None
        for p in evidence.wrong_inputs:
            rests.append(evidence.part(a, p))
            owns.append(evidence.part(b, p))
            claims.append(evidence.part(c, p))
    rest, own, claim = np.concatenate(rests), np.concatenate(owns), np.concatenate(claims)
    if not own.any() or not np.isfinite(claim).all():
        return None
    r = float(own @ (claim - rest) / (own @ own))
    r = 0.0 if abs(r) < 1e-6 else r
    return r if evidence.close(rest + r * own, claim, 10) else None
