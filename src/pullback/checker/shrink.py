"""Shrink a failing input: shorter axes and rounder numbers, as long as it still fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pullback.checker.examine import examine
from pullback.checker.points import Point, finite, stretch
from pullback.checker.settings import Settings
from pullback.dtypes import is_complex, is_guest, is_real_or_complex
from pullback.view.subject import Arrays, Subject


def candidates(inputs: Arrays) -> Iterator[Arrays]:
    """Give smaller or rounder inputs, the boldest first."""
    lengths = {d for x in inputs for d in x.shape if d > 3}
    if lengths:
        yield tuple(stretch(x, {d: 3 if d % 2 else 2 for d in lengths}) for x in inputs)
        for d in sorted(lengths, reverse=True):
            for less in (2, 3):
                yield tuple(stretch(x, {d: less}) for x in inputs)
    yield tuple(
        np.round(x, 2) if is_real_or_complex(x.dtype) and not is_guest(x.dtype) else x for x in inputs
    )


def shrunk(subject: Subject, settings: Settings) -> Subject:
    """Give the smallest failing variant found, or the subject itself."""
    rng = settings.rng(11)
    if sum(x.size for x in subject.inputs) <= 64 or any(is_complex(x.dtype) for x in subject.inputs):
        return subject
    for inputs in candidates(subject.inputs):
        if finite(subject, inputs) is None:
            continue
        try:
            outcome = examine(subject, Point("shrunk", inputs), rng, settings, own=False)
        except Exception:  # a smaller input may be no input at all
            continue
        if outcome.verdict == "wrong" and outcome.discrepancy > 1e-9:
            return subject.at(inputs)
    return subject
