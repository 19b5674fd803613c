"""Is the derivative of the gradient right, with a cotangent that depends on the inputs too?"""

from __future__ import annotations

import numpy as np

from pullback.checker.examine import examine
from pullback.checker.finding import Answer, Finding, can
from pullback.checker.points import Point
from pullback.checker.probe import probe
from pullback.checker.problem import Problem, ShapeMismatchError
from pullback.checker.second import second_subject
from pullback.checker.settings import Settings
from pullback.checker.triangles import one_triangle, symmetrised
from pullback.view.subject import Subject

ROW = "second order"


@probe(rank=50, skip_when_wrong=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Test the host's second derivative against differences of the pullback."""
    if settings.order < 2 or subject.second is None or subject.order == 1 or not any(subject.differentiable):
        return []
    half = one_triangle(Problem.of(subject), anything=not subject.is_rule)
    if half is not None and any(a.tobytes() != b.tobytes() for a, b in zip(half.inputs, subject.inputs)):
        said = "not asked: the function reads one triangle of an input that is not symmetric"
        return can("second_order", ROW, "undecided", said)
    rng = settings.rng(8)
    try:
        # A gradient may read both triangles, and differentiate by the convention of the one.
        lifted = second_subject(subject if half is None else symmetrised(subject), rng)
    except Exception:  # no gradient at all, or none that can be evaluated here
        return []
    try:
        outcome = examine(lifted, Point("given", lifted.inputs), rng, settings, own=False)
    except ShapeMismatchError:
        said = "the second derivative has another shape than its input"
        return can("second_order", ROW, "no", said, "wrong", cause="wrong-shape", inputs=subject.inputs)
    except Exception as error:  # the host cannot differentiate the pullback
        return can("second_order", ROW, "refused", f"no second derivative: {type(error).__name__}")
    if outcome.verdict == "wrong" and outcome.discrepancy < 1e-6:
        return []
    if outcome.verdict != "wrong":
        answer: Answer = "yes" if outcome.verdict == "right" else "undecided"
        finest = float(outcome.resolution) if np.isfinite(outcome.resolution) else None
        return can("second_order", ROW, answer, f"second order {outcome.verdict}", resolution=finest)
    if subject.opaque is not None and subject.opaque():
        return can("second_order", ROW, "no", "no second derivative: the gradient runs through Python code")
    worst = outcome.worst
    return can(
        "second_order",
        ROW,
        "no",
        "the second derivative is not the derivative of the gradient",
        "wrong",
        measured=worst.measured if worst else None,
        claimed=worst.claimed if worst else None,
        resolution=float(outcome.resolution),
        inputs=subject.inputs,
    )
