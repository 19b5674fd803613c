"""Has each cotangent the shape of its input when axes are longer than in the example?

What is right only for equal lengths shows then. Asked of rules that are right so far: a wrong one has a
better explanation than its shape elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from pullback.checker.finding import Finding
from pullback.checker.points import reshaped
from pullback.checker.probe import probe
from pullback.checker.probes.contract import look
from pullback.checker.settings import Settings
from pullback.view.subject import Subject


@probe(rank=35, skip_when_wrong=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Lengthen axes where the function accepts it, and look at the shapes that come back."""
    if not settings.own_points:
        return []
    for label, inputs in reshaped(subject, settings.rng(3)):
        found = look(subject.at(inputs), settings, label, subject.inputs)
        worse = [
            replace(f, resized=True) for f in found if f.verdict == "wrong" and f.cause != "pullback-raises"
        ]
        if worse:
            return worse
    return []
