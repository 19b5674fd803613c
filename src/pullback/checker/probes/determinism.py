"""Do the function and its pullback give the same twice?"""

from __future__ import annotations

import numpy as np

from pullback.checker.draw import cotangents
from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.view.subject import Arrays, Cotangents, Subject


@probe(rank=5, anew=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Run everything twice on the same input."""
    # Whoever declares another gradient may draw it: that of an estimate, and of a random rounding.
    meant = subject.intent.kind == "differs"
    first, again = subject.forward(subject.inputs), subject.forward(subject.inputs)
    unit = roundoff(first)
    if deviation(first, again) > 1e3 * unit:
        return [
            Finding(
                "determinism",
                "note" if meant else "wrong" if subject.is_rule else "undecided",
                "the function gives another value on a second call with the same input: it is "
                "random or keeps state",
                "stateful-forward",
                "draw the random numbers outside, or pass a seed as an argument",
                inputs=subject.inputs,
                last=True,
            )
        ]
    given = cotangents(subject, settings.rng(9))
    try:
        one, two = subject.pullback(subject.inputs, given), subject.pullback(subject.inputs, given)
    except Exception:  # the contract probe says so
        return []
    if deviation(one, two) > 1e3 * unit:
        return [
            Finding(
                "determinism",
                "note" if meant else "wrong",
                "the gradient differs between two calls with the same input and upstream",
                "non-deterministic",
                "keep what the forward drew (a mask, a permutation) as a residual instead of drawing again",
                inputs=subject.inputs,
                cotangents=given,
                last=True,
            )
        ]
    return []


def deviation(a: Arrays | Cotangents, b: Arrays | Cotangents) -> float:
    """Give the largest relative difference."""
    worst = 0.0
    for x, y in zip(a, b):
        if x is None or y is None or x.shape != y.shape or not x.size:
            continue
        p, q = x.astype(np.complex128), y.astype(np.complex128)
        ok = np.isfinite(p) & np.isfinite(q)
        size = float(np.abs(p[ok]).max(initial=0.0))
        if size:
            worst = max(worst, float(np.abs(p[ok] - q[ok]).max()) / size)
    return worst
