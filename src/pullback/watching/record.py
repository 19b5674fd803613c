"""What is known of one gradient: few numbers, computed where the tensor is, as one row.

Norm, least, largest and mean are those of the finite elements; NaN, infinities and zeros are counted apart.
The sizes of the others are counted by decades, always the same ones, so that two rows can be compared. Of a
complex gradient the real and the imaginary parts are the elements. The decades of a large tensor are those
of a sample: a logarithm costs more than all the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

LOWEST, HIGHEST = -12, 6  # powers of ten; what is smaller or larger stands in the first or the last bin
BINS = HIGHEST - LOWEST + 2
FIELDS = ("norm", "min", "max", "mean", "size", "nan", "inf", "zero")
WIDTH = len(FIELDS) + BINS  # numbers in a row
SAMPLE = 1 << 12  # elements whose sizes are counted by decades; of a larger tensor, as many evenly spread
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


def stride(size: int) -> int:
    """Say each how many elements one is counted by decades; odd, because tensors have even widths."""
    return 1 if size <= SAMPLE else -(-size // SAMPLE) | 1


def scale_of(peak: float) -> float:
    """Say by what to divide before squaring: 1, unless the squares of such sizes would be lost."""
    return 1.0 if 1e-15 < peak < 1e15 or not peak else peak


def _extremes(x: np.ndarray[Any, Any]) -> tuple[float, float]:
    return (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)


def numbers(array: Any) -> np.ndarray[Any, Any]:
    """Compute the row of an array."""
    x = np.asarray(array)
    if np.iscomplexobj(x):
        x = np.stack([x.real, x.imag])
    x = x.ravel()
    x = x if x.dtype == np.float64 else x.astype(np.float32, copy=False)
    made = np.zeros(WIDTH)
    made[4] = x.size
    finite, least, largest = x, *_extremes(x)
    if not math.isfinite(least + largest):
        made[5], made[6] = np.isnan(x).sum(), np.isinf(x).sum()
        finite = x[np.isfinite(x)]
        least, largest = _extremes(finite)
    if finite.size:
        scale = scale_of(max(-least, largest))
        scaled = finite if scale == 1.0 else finite / finite.dtype.type(scale)
        norm = math.sqrt(float(np.dot(scaled, scaled))) * scale
        made[:4] = norm, least, largest, float(scaled.mean()) * scale
        made[7] = finite.size - np.count_nonzero(finite != 0)  # of booleans: six times as fast
    part = x[:: stride(x.size)]
    sizes = np.abs(part[np.isfinite(part) & (part != 0)])
    bins = np.clip(np.floor(np.log10(sizes)) + SHIFT, 0, BINS - 1).astype(np.int64)
    made[8:] = np.bincount(bins, minlength=BINS)
    return made


def edges() -> list[tuple[float, float]]:
    """List the decades: from, and below."""
    inner = [10.0**k for k in range(LOWEST, HIGHEST + 1)]
    return list(zip([0.0, *inner], [*inner, math.inf]))


def median(sizes: np.ndarray[Any, Any]) -> float:
    """Give the median of what is finite; NaN if nothing is."""
    finite = sizes[np.isfinite(sizes)]
    return float(np.median(finite)) if len(finite) else math.nan


class History(Sequence[Record]):
    """The records of one place, by steps, and how often no gradient arrived there."""

    def __init__(self, name: str, records: Sequence[Record], none: int) -> None:
        self.name, self.none = name, none
        self._records = list(records)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        return self._records[index]

    def of(self, field: str) -> np.ndarray[Any, Any]:
        """Give one field of all records, such as `"norm"` or `"step"`."""
        return np.array([getattr(record, field) for record in self._records])

    def count(self, value: Any) -> int:
        """Count NaN, infinities or zeros over all steps, by the name of the field."""
        return int(sum(getattr(record, value) for record in self._records))

    @property
    def rms(self) -> float:
        """The median over the steps of the root of the mean square; NaN if nothing finite was heard."""
        return median(self.of("rms"))

    @property
    def decades(self) -> list[int]:
        """The histogram of sizes, over all steps."""
        return [sum(column) for column in zip(*(r.decades for r in self._records))] or [0] * BINS

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} steps, rms {self.rms:.3g}, {self.none} times no gradient>"
