"""A complex conjugate is missing, or a part of a complex gradient is dropped."""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.dtypes import is_complex
from pullback.view.subject import Array

SLUG = "conjugate-missing"
RANK = 35
CONFIRM = True


def conjugated(evidence: Evidence, v: Array) -> Array:
    """Conjugate a packed cotangent."""
    space = evidence.problem.codomain
    v = v.copy()
    for k, dtype in enumerate(space.dtypes):
        if is_complex(dtype):
            v[space.part(k)][1::2] *= -1
    return v


def search(evidence: Evidence) -> Match | None:
    """Compare with the conjugates of the truth, with and without a conjugated cotangent."""
    true, wrong = evidence.true, evidence.wrong_inputs
    places = [p for p in wrong if is_complex(evidence.problem.domain.dtypes[p])]
    if true is None or not places or len(places) < len(wrong):
        return None
    inputs = evidence.subject.inputs
    turned = [evidence.true_at(inputs, conjugated(evidence, v)) for v in evidence.vs]
    mirrored = [np.conj(x) if is_complex(x.dtype) else x for x in inputs]
    moved = [evidence.true_at(tuple(mirrored), v) for v in evidence.vs]

    def holds(guess: list[Array | None], real: bool, flip: bool) -> bool:
        for g, c in zip(guess, evidence.claimed):
            if g is None:
                return False
            for p in places:
                a, b = evidence.part(g, p).copy(), evidence.part(c, p)
                if flip:
                    a[1::2] *= -1
                if real:
                    a[1::2] = 0
                if not evidence.close(a, b, 10):
                    return False
        return True

    names = listed([evidence.name(p) for p in places])
    if (
        holds(turned, False, True)
        or holds(list(true), False, True)
        or holds(turned, False, False)
        or holds(moved, False, False)
    ):
        return Match(
            SLUG,
            f"a complex conjugate is missing in the gradient of {names}",
            f"conjugate what multiplies `dy`: {evidence.subject.words.convention}",
            names,
        )
    if holds(list(true), True, False):
        return Match(
            SLUG,
            f"the imaginary part of the gradient of {names} is dropped",
            "keep the gradient complex",
            names,
        )
    return None
