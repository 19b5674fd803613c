"""What does the pullback cost beside plain autodiff? Asked by name only: time is no property of a rule."""

from __future__ import annotations

import time

from pullback.checker.draw import cotangents
from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.view.subject import Pullback, Subject


@probe(rank=130, on_request=True, in_shipped_dtype=True, anew=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Time the rule and plain autodiff side by side."""
    if subject.body_pullback is None:
        return []
    given = cotangents(subject, settings.rng(20))

    def best(pullback: Pullback) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            pullback(subject.inputs, given)
            times.append(time.perf_counter() - start)
        return min(times)

    ratio = best(subject.pullback) / best(subject.body_pullback)
    return [
        Finding(
            "cost",
            "note",
            f"a gradient costs {ratio:.2f} times that of plain autodiff",
            measured=ratio,
            where="cost",
        )
    ]
