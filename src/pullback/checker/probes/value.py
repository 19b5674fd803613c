"""Does the decorated function return what its body returns?"""

from __future__ import annotations

import numpy as np

from pullback.checker.draw import near, rounding
from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.view.subject import Arrays, Subject

STEPS = 32  # units of roundoff that an input is moved by, at most


@probe(rank=10, anew=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Compare the values of the rule and of its body."""
    if subject.body_forward is None:
        return []
    forward = subject.differentiated or subject.forward
    a, b = forward(subject.inputs), subject.body_forward(subject.inputs)
    rtol = 16 * roundoff(a)
    if len(a) == len(b) and all(near(x, y, rtol=rtol) for x, y in zip(a, b)):
        return []
    with subject.by_steps():  # two programs round differently, the same operations do not
        again, b = forward(subject.inputs), subject.body_forward(subject.inputs)
    if len(a) == len(b) and all(near(x, y, rtol=rtol) for x, y in zip(again, b)):
        return []
    if not all(near(x, y, rtol=rounding(roundoff(a))) for x, y in zip(a, again)):
        return []  # not deterministic: another probe says so
    if len(a) == len(b) and _is_rounding(subject, settings, again, b):
        return []
    where = "differentiated, " if subject.differentiated else ""
    return [
        Finding(
            "value",
            "wrong",
            f"{where}the rule returns another value than its body",
            "value-changed",
            inputs=subject.inputs,
        )
    ]


def _is_rounding(subject: Subject, settings: Settings, ours: Arrays, theirs: Arrays) -> bool:
    """Tell whether values are no further apart than the last digits of the inputs move them.

    An iteration that ends when it likes makes much of its rounding, and two programs round differently.
    """
    rng, far = settings.rng(9), [np.zeros(y.shape) for y in theirs]
    for _ in range(6):
        moved = tuple(
            (x * (1 + roundoff((x,)) * rng.integers(-STEPS, STEPS, x.shape, endpoint=True))).astype(x.dtype)
            if x.dtype.kind in "fc"
            else x
            for x in subject.inputs
        )
        found = subject.body_forward(moved) if subject.body_forward else theirs
        if [y.shape for y in found] != [y.shape for y in theirs]:
            return False
        far = [np.maximum(f, abs(y - b)) for f, y, b in zip(far, found, theirs)]
    return all((abs(a - b) <= STEPS * f).all() for a, b, f in zip(ours, theirs, far))
