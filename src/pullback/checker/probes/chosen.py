"""Where the derivative is a choice: is the slope that stands there the one that is declared?

A rule may choose at a kink, and says which slope it chose. Whether a choice is honest, between the slopes of
both sides, is asked with the derivative; here only whether it is the declared one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from pullback.checker.finding import Finding
from pullback.checker.points import Point, own_points
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.checker.switches import switch_points
from pullback.view.subject import Subject


@probe(rank=35, skip_when_wrong=True)
def question(subject: Subject, settings: Settings) -> Iterator[Finding]:
    """Compare the gradient of the sum of the outputs with what is declared, wherever something is."""
    if subject.chosen is None:
        return
    met = 0
    own = (own_points(subject, settings.rng(31)), switch_points(subject, settings.rng(32)))
    points = chain((Point("given", subject.inputs),), *(own if settings.own_points else ()))
    for point in points:
        try:
            declared = subject.chosen(point.inputs)
            ones = tuple(np.ones_like(y) for y in subject.forward(point.inputs))
            claimed = subject.pullback(point.inputs, ones)
        except Exception:  # a function may refuse a point in any way it likes
            continue
        moving = [k for k, yes in enumerate(subject.differentiable) if yes]
        for k, slope in zip(moving, declared):
            found = claimed[k]
            if found is None or found.shape != slope.shape:
                continue
            there = np.isfinite(slope)
            met += int(there.sum())
            near = np.isclose(found, slope, rtol=16 * roundoff([found]), atol=0.0)
            if (there & ~near).any():
                place = tuple(int(i) for i in np.argwhere(there & ~near)[0])
                yield Finding(
                    "chosen",
                    "wrong",
                    f"the gradient of `{subject.names[k]}` is {found[place]:.6g} at a point ({point.label}) "
                    f"where {slope[place]:.6g} is declared",
                    "other-choice",
                    measured=float(slope[place]),
                    claimed=float(found[place]),
                    point=point.label,
                    inputs=point.inputs,
                )
                return
    said = "the declared choice stands" if met else "no point of the checker's own is a declared choice"
    yield Finding("chosen", "note", f"{said}: {subject.intent}" if met else said)
