"""Axes: numbers to places, and the few numbers that are written beside them.

A gradient may span any number of decades and both signs. Where most of it is a thousandth of the largest, an
axis is logarithmic on both sides of zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pullback.report.html.shapes import BOTTOM, LEFT, RIGHT, TOP, Picture, Text

STEPS = 7  # of a linear axis, at most
TICKS = 5  # of a logarithmic one
DECADES = 3  # below the largest, where a linear axis shows nothing


@dataclass(frozen=True)
class Axis:
    """Map numbers between two ends to places between two others; `small` is where logarithms begin."""

    low: float
    high: float
    start: float
    end: float
    small: float = 0.0  # zero: linear

    def __call__(self, value: float) -> float:
        """Give the place of a number."""
        low, high, at = map(self._bent, (self.low, self.high, value))
        return self.start + (at - low) / ((high - low) or 1.0) * (self.end - self.start)

    def _bent(self, value: float) -> float:
        if not self.small:
            return value
        return math.copysign(math.log10(1 + abs(value) / self.small), value)

    def holds(self, value: float) -> bool:
        """Tell whether a number is between the ends."""
        return self.low <= value <= self.high

    def ticks(self) -> list[float]:
        """Give a few round numbers between the ends."""
        return self._decades() if self.small else self._steps()

    def _steps(self) -> list[float]:
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / STEPS))
        step = next(step * n for n in (1, 2, 5, 10, 20) if (self.high - self.low) / (step * n) <= STEPS)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]

    def _decades(self) -> list[float]:
        reach = max(abs(self.low), abs(self.high))
        powers = range(math.ceil(math.log10(self.small)), math.floor(math.log10(reach)) + 1)
        sides = 2 if self.low < 0 < self.high else 1
        every = max(1, math.ceil(len(powers) * sides / TICKS))
        kept = [10.0**n for n in powers if n % every == 0]
        return sorted(t for t in (0.0, *kept, *(-p for p in kept)) if self.holds(t))


def axis_of(values: Iterable[float], start: float, end: float, decades: int = 8) -> Axis:
    """Choose an axis for numbers, a little wider than they are; it tells at most so many decades apart."""
    finite = sorted(v for v in values if math.isfinite(v)) or [0.0]
    low, high = finite[0], finite[-1]
    sizes = sorted(abs(v) for v in finite if v)
    if sizes and sizes[-1] > 10.0**DECADES * sizes[len(sizes) // 2]:
        small = max(sizes[0], sizes[-1] * 10.0**-decades)
        return Axis(low * 2 if low < 0 else low / 2, high * 2 if high > 0 else high / 2, start, end, small)
    pad = (high - low) * 0.06 or max(abs(high), 1.0) * 0.5
    return Axis(low - pad, high + pad, start, end)


def framed(picture: Picture, x: Axis, y: Axis, across: str, up: str) -> None:
    """Draw the lines of a grid, their numbers, and what the axes mean."""
    for tick in y.ticks():
        picture.line(LEFT, y(tick), RIGHT, y(tick), "grid zero" if tick == 0 else "grid")
    for tick in x.ticks():
        picture.line(x(tick), BOTTOM, x(tick), BOTTOM + 4, "frame")
    picture.texts += [Text(LEFT - 8, y(t) + 4, shown(t), "end") for t in spaced(y, 14)]
    picture.texts += [Text(x(t), BOTTOM + 18, shown(t), "middle") for t in spaced(x, 42)]
    picture.line(LEFT, BOTTOM, RIGHT, BOTTOM, "frame")
    picture.texts.append(Text(RIGHT, BOTTOM + 36, across, "end label"))
    picture.texts.append(Text(LEFT, TOP - 13, up, "start label"))


def spaced(axis: Axis, least: float) -> list[float]:
    """Give the ticks that have room for their numbers; zero has its number first."""
    taken: list[float] = []
    for tick in sorted(axis.ticks(), key=bool):
        if all(abs(axis(tick) - axis(other)) >= least for other in taken):
            taken.append(tick)
    return taken


def shown(value: float) -> str:
    """Write a number of an axis as a person would."""
    size = abs(value)
    if size and (size >= 1e5 or size < 1e-3):
        power = round(math.log10(size))
        if math.isclose(size, 10.0**power):
            return ("−" if value < 0 else "") + f"1e{power}"
    return f"{value:.3g}".replace("-", "−", 1).replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def place(value: float) -> str:
    """Write a number that somebody hovers over."""
    return f"{value:.6g}"
