"""The cotangent of one output is ignored, or two are exchanged."""

from __future__ import annotations

import numpy as np

from pullback.check.cause import Match
from pullback.check.evidence import Evidence
from pullback.check.subject import Array

SLUG = "output-cotangent"
RANK = 80


def search(evidence: Evidence) -> Match | None:
    """Zero, or exchange, the cotangents of whole outputs."""
    space = evidence.problem.codomain
    count = len(space.shapes)
    if evidence.true is None or count < 2 or not evidence.wrong_inputs:
        return None

    def fits(change: object) -> bool:
        assert callable(change)
        guess = [evidence.true_at(evidence.subject.inputs, change(v.copy())) for v in evidence.vs]
        return all(evidence.explains(guess, p) for p in evidence.wrong_inputs)

    for k in range(count):
        part = space.part(k)

        def silence(v: Array, part: slice = part) -> Array:
            v[part] = 0
            return v

        if fits(silence):
            return Match(
                SLUG, f"the cotangent of output {k} is ignored",
                f"add what the cotangent of output {k} contributes",
            )
    for i in range(count):
        for j in range(i + 1, count):
            if space.shapes[i] != space.shapes[j]:
                continue
            a, b = space.part(i), space.part(j)

            def swap(v: Array, a: slice = a, b: slice = b) -> Array:
                v[a], v[b] = v[b].copy(), v[a].copy()
                return v

            def copy(v: Array, a: slice = a, b: slice = b) -> Array:
                v[b] = np.array(v[a])
                return v

            if fits(swap):
                return Match(SLUG, f"the cotangents of outputs {i} and {j} are exchanged", f"exchange the arguments {i} and {j} of `grad`")
            if fits(copy):
                return Match(SLUG, f"the cotangent of output {i} is used for output {j} too", f"use the cotangent of output {j}")
    return None
