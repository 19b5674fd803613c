"""The derivative is evaluated at the output instead of the input, or the other way round."""

from __future__ import annotations

from functools import partial

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.dtypes import is_complex

SLUG = "evaluated-at-output"
RANK = 65
CONFIRM = True


def search(evidence: Evidence) -> Match | None:
    """Set the output in place of each input, here and where outputs are more likely to be valid inputs."""
    found = compare(evidence)
    if found is None and evidence.true is not None and evidence.wrong_inputs:
        moved = evidence.problem.with_x(1.5 + 2 * np.abs(evidence.problem.x))
        try:
            larger = Evidence(
                evidence.subject.at(moved), evidence.settings, evidence.order, evidence.autodiff
            )
        except Exception:  # outside the domain
            return None
        found = compare(larger)
    return found


def compare(evidence: Evidence) -> Match | None:
    """Set the output in place of each input, in the truth and in the claim."""
    wrong = evidence.wrong_inputs
    # A claim that no input moves is evaluated nowhere.
    if evidence.true is None or not wrong or any(evidence.unmoved(p) for p in wrong):
        return None
    inputs = evidence.subject.inputs
    for y in evidence.outputs:
        for k in evidence.problem.chosen:
            if (
                inputs[k].shape != y.shape
                or is_complex(inputs[k].dtype) != is_complex(y.dtype)
                or np.array_equal(inputs[k], y)
            ):
                continue
            moved = tuple(y.astype(x.dtype) if i == k else x for i, x in enumerate(inputs))
            name = evidence.subject.names[k]
            if evidence.is_truth_at(moved):
                return Match(
                    SLUG,
                    f"the derivative is evaluated at the output instead of at `{name}`",
                    f"use `{name}` where the gradient uses the output",
                    listed([evidence.name(p) for p in wrong]),
                )
            if evidence.claims_truth(partial(evidence.claimed_at, moved)):
                return Match(
                    SLUG,
                    f"the gradient uses `{name}` where its formula needs the output: it is right "
                    "when evaluated at the output",
                    f"use the output where the gradient uses `{name}`",
                    listed([evidence.name(p) for p in wrong]),
                )
    return None
