"""Does the decorated function return what its body returns?"""

from __future__ import annotations

from pullback.checker.draw import near, rounding
from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.view.subject import Subject


@probe(rank=10)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Compare the values of the rule and of its body."""
    if subject.body_forward is None:
        return []
    a, b = subject.forward(subject.inputs), subject.body_forward(subject.inputs)
    rtol = 16 * roundoff(a)
    if len(a) == len(b) and all(near(x, y, rtol=rtol) for x, y in zip(a, b)):
        return []
    with subject.by_steps():  # two programs round differently, the same operations do not
        again, b = subject.forward(subject.inputs), subject.body_forward(subject.inputs)
    if len(a) == len(b) and all(near(x, y, rtol=rtol) for x, y in zip(again, b)):
        return []
    if not all(near(x, y, rtol=rounding(roundoff(a))) for x, y in zip(a, again)):
        return []  # not deterministic: another probe says so
    return [
        Finding(
            "value",
            "wrong",
            "the rule returns another value than its body",
            "value-changed",
            inputs=subject.inputs,
        )
    ]
