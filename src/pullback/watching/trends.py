"""Which gradients vanish or explode, over the layers and over the steps, in words.

Sizes are compared, not norms: a norm grows with the tensor. Over the layers a place is compared with the
first of its kind in the backward pass, over the steps its last quarter with its first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pullback.watching.record import History, median

if TYPE_CHECKING:
    from pullback.watching.log import Log


class Trend(NamedTuple):
    """A place, and what its gradient does."""

    name: str
    ratio: float
    words: str

    def __str__(self) -> str:
        return f"{self.name}: {self.words}"


def trends(log: Log) -> list[Trend]:
    """Compare each place with where the backward pass begins, and with itself."""
    found = []
    first: dict[str, History] = {}  # of each kind, the place where the backward pass begins
    for history in log:
        if not math.isfinite(history.rms):
            continue
        begin = first.setdefault(log.kinds[history.name], history)
        if begin.rms > 0 and begin is not history:
            ratio = history.rms / begin.rms
            words = f"its gradient is {ratio:.1e} times that at {begin.name}, where the backward pass begins"
            found.append(Trend(history.name, ratio, words))
        sizes, steps = history.of("rms"), history.of("step")
        quarter = len(sizes) // 4
        if quarter:
            early, late = median(sizes[:quarter]), median(sizes[-quarter:])
            if early > 0 and math.isfinite(late):
                words = (
                    f"its gradient went from {early:.1e} to {late:.1e}, from step {steps[0]} to {steps[-1]}"
                )
                found.append(Trend(history.name, late / early, words))
    return found
