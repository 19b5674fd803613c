"""What a page draws of a check, as data of bounded size: at most `MOST` entries a picture.

A picture travels in the JSON report, so a number that JSON cannot write is a word. Where there is more than
fits, the worst entries are kept, and the picture says how many there were.
"""

from __future__ import annotations

from typing import TypeAlias, TypedDict

import numpy as np

from pullback.view.subject import Array

MOST = 256
Number: TypeAlias = "float | str"


class Scatter(TypedDict):
    """Set the claimed gradient beside the measured one, entry by entry."""

    kind: str
    order: int
    oracle: str  # who measured
    total: int  # entries that there are
    entries: list[str]
    claimed: list[Number]
    measured: list[Number]
    apart: list[int]  # the places of those that certainly differ


class Heat(TypedDict):
    """Lay the error over the shape of one input, as a share of its largest gradient."""

    kind: str
    order: int
    input: str
    shape: list[int]
    rows: list[str]  # the entries that a row of cells stands for
    columns: list[str]
    cells: list[Number]  # row by row; each the largest error of its entries
    noise: float  # an error that may be one of measuring
    folded: bool  # whether a cell stands for several entries


class Slice(TypedDict):
    """Follow the function along one entry, with the two slopes at the point."""

    kind: str
    order: int
    entry: str
    at: float
    steps: list[float]
    values: list[Number]  # the change since the point
    claimed: Number
    measured: Number


class Stability(TypedDict):
    """Follow the derivative over forty decades, by the rule and by plain autodiff of its body."""

    kind: str
    order: int
    input: str
    dtype: str
    at: list[float]
    claimed: list[Number]
    autodiff: list[Number]


def number(value: float) -> Number:
    """Write a number so that JSON can hold it."""
    return float(value) if np.isfinite(value) else str(float(value))


def rounded(values: Array) -> list[float]:
    """Write finite numbers with the digits that anybody can see."""
    return [float(f"{v:.9g}") for v in values.reshape(-1)]


def numbers(values: Array) -> list[Number]:
    """Write numbers with the digits that anybody can see; what is not finite is a word."""
    return [float(f"{v:.9g}") if np.isfinite(v) else str(float(v)) for v in values.reshape(-1)]
