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
    lengths = {d: least(d, inputs) for x in inputs for d in x.shape if d > 3}
    lengths = {d: low for d, low in lengths.items() if low < d}
    if lengths:
        boldest = {d: max(low, 3 if d % 2 else 2) for d, low in lengths.items()}
        yield tuple(stretch(x, boldest) for x in inputs)
        for d, low in sorted(lengths.items(), reverse=True):
            for less in sorted({low, max(low, 3)}):
                yield tuple(stretch(x, {d: less}) for x in inputs)
    yield tuple(
        np.round(x, 2) if is_real_or_complex(x.dtype) and not is_guest(x.dtype) else x for x in inputs
    )


def least(length: int, inputs: Arrays) -> int:
    """Give the length to which an axis may be cut: what an integer may count or point to there stays.

    An operation that does not look at its indices would read past the end, and take the process with it.
    """
    integers = [x.astype(np.int64) for x in inputs if x.dtype.kind in "iu"]
    pointed = [x[np.abs(x) <= length] for x in integers]
    return max([2, *(int(np.maximum(x + 1, -x).max()) for x in pointed if x.size)])


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
