"""What is known of one gradient: few numbers, computed where the tensor is, as one row.

Norm, least, largest and mean are those of the finite elements; NaN, infinities and zeros are counted apart.
The sizes of the others are counted by decades, always the same ones, so that two rows can be compared. Of a
complex gradient the real and the imaginary parts are the elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

LOWEST, HIGHEST = -12, 6  # powers of ten; what is smaller or larger stands in the first or the last bin
BINS = HIGHEST - LOWEST + 2
FIELDS = ("norm", "min", "max", "mean", "size", "nan", "inf", "zero")
WIDTH = len(FIELDS) + BINS  # numbers in a row
SHIFT = 1 - LOWEST  # a size s stands in the bin ⌊log₁₀ s⌋ + SHIFT, or in the first or the last


class Record(NamedTuple):
    """A gradient at a place, at a step."""

    name: str
    step: int
    norm: float
    min: float
    max: float
    mean: float
    size: int
    nan: int
    inf: int
    zero: int
    decades: tuple[int, ...]

    @property
    def rms(self) -> float:
        """The root of the mean square: a size that does not grow with the tensor."""
        finite = self.size - self.nan - self.inf
        return self.norm / math.sqrt(finite) if finite else math.nan


def record(name: str, step: int, row: Any) -> Record:
    """Read a row."""
    numbers = np.asarray(row, np.float64).tolist()
    real, counts = numbers[:4], [int(n) for n in numbers[4:]]
    if counts[1] + counts[2] == counts[0]:  # nothing finite: the least and the largest of nothing
        real = [math.nan] * 4
    norm, least, largest, mean = real
    size, nan, inf, zero = counts[:4]
    return Record(name, step, norm, least, largest, mean, size, nan, inf, zero, tuple(counts[4:]))


def edges() -> list[tuple[float, float]]:
    """List the decades: from, and below."""
    inner = [10.0**k for k in range(LOWEST, HIGHEST + 1)]
    return list(zip([0.0, *inner], [*inner, math.inf]))


class History(Sequence[Record]):
    """The records of one place, by steps, and how often no gradient arrived there."""

    def __init__(self, name: str, records: Sequence[Record], none: int) -> None:
        self.name, self.none = name, none
        self._records = list(records)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        return self._records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def of(self, field: str) -> np.ndarray[Any, Any]:
        """Give one field of all records, such as `"norm"` or `"step"`."""
        return np.array([getattr(record, field) for record in self._records])

    def count(self, value: Any) -> int:
        """Count NaN, infinities or zeros over all steps, by the name of the field."""
        return int(sum(getattr(record, value) for record in self._records))

    @property
    def rms(self) -> float:
        """The median over the steps of the root of the mean square; NaN if nothing finite was heard."""
        found = self.of("rms")
        return float(np.median(found[np.isfinite(found)])) if np.isfinite(found).any() else math.nan

    @property
    def decades(self) -> list[int]:
        """The histogram of sizes, over all steps."""
        return [sum(column) for column in zip(*(r.decades for r in self._records))] or [0] * BINS

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} steps, rms {self.rms:.3g}, {self.none} times no gradient>"
