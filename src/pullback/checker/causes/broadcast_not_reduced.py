"""A broadcast input gets only one slice of its gradient. (A gradient that still has the axis is a matter
of contract.)
"""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array

SLUG = "broadcast-not-reduced"
RANK = 85
CONFIRM = True


def search(evidence: Evidence) -> Match | None:
    """Ask whether the claim is the truth for a single slice of `dy`."""
    shapes = evidence.problem.codomain.shapes
    wrong = evidence.wrong_inputs
    if evidence.true is None or len(shapes) != 1 or not wrong or evidence.vs[0].size != np.prod(shapes[0]):
        return None
    if any(evidence.array(p).size >= evidence.vs[0].size for p in wrong):
        return None
    for axis, length in enumerate(shapes[0]):
        for index in {0, length - 1}:
            if length < 2:
                continue
            keep = np.zeros(length)
            keep[index] = 1
            mask = keep.reshape([-1 if a == axis else 1 for a in range(len(shapes[0]))])

            def guess(v: Array, mask: Array = mask) -> Array | None:
                return evidence.true_at(evidence.subject.inputs, (v.reshape(shapes[0]) * mask).reshape(-1))

            if evidence.explains(guess):
                names = listed([evidence.name(p) for p in wrong])
                return Match(
                    SLUG,
                    f"only index {index} of axis {axis} of `dy` reaches {names}; the axis must be summed",
                    f"sum over axis {axis}: `{evidence.subject.words.sum.format(g='…', axis=axis)}`, or "
                    f"`pb.unbroadcast(g, like={evidence.name(wrong[0])})`",
                    names,
                )
    return None
