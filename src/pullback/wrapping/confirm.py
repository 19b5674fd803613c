"""Whether a declared sparsity is true, confirmed by one random direction.

Columns that are moved together tell their entries apart by the pattern alone: an entry that it misses is
taken for another one, and the gradient is wrong. Along a random direction u every row must change by what
its declared entries J·u add up to. Where one does not, it may be a kink, or a zero where all terms are of
higher order; so it is asked again nearby, and accused only if it disagrees there too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import ExternalGradientError
from pullback.wrapping.foreign import Point
from pullback.wrapping.local import Steps
from pullback.wrapping.sparsity import Pattern

if TYPE_CHECKING:
    from pullback.wrapping.differences import Differences

Array = np.ndarray[Any, Any]


@dataclass
class Columns:
    """The columns of a sparse Jacobian at a point, moved in groups."""

    steps: Steps
    pattern: Pattern
    groups: list[Array]
    h: Array

    def points(self, prefix: str) -> Iterator[Point]:
        """List where the function is run."""
        for k, move in enumerate(self.groups):
            label = f"{prefix}difference {k} of {len(self.groups)}"
            yield from self.steps.points(self.steps.single(self.h, move), label)

    def quotients(self, stream: Iterator[list[Array]]) -> Iterator[tuple[Array, Array, Array]]:
        """Give entries: rows, columns and numbers."""
        pattern = self.pattern
        for k, move in enumerate(self.groups):
            change, made = self.steps.change(self.steps.single(self.h, move), stream)
            held = pattern.colours[pattern.columns] == k
            i, j = pattern.rows[held], pattern.columns[held]
            yield i, j, change[i] / made[j]


class Direction:
    """One random direction: what the declared entries say of it, and what the function does."""

    def __init__(self, columns: Columns, seed: int) -> None:
        self.columns = columns
        self.steps = columns.steps
        local = self.steps.local
        rng = np.random.default_rng([7, seed])
        count = local.inputs.size
        # lengths of their own, so that two missing entries do not cancel
        self.lengths = rng.choice([-1.0, 1.0], count) * rng.uniform(0.5, 1.0, count)
        self.shift = columns.h * self.lengths
        self.entries: list[tuple[Array, Array, Array]] = []
        self.wrong: Array = np.zeros(0, int)

    def points(self, prefix: str) -> Iterator[Point]:
        """List where the function is run."""
        return self.steps.points(self.shift, f"{prefix}along a random direction")

    def disagrees(self, stream: Iterator[list[Array]], noise: float) -> bool:
        """Tell whether a row changes by something else than its entries say."""
        seen, made = self.steps.change(self.shift, stream)
        local, scheme = self.steps.local, self.steps.scheme
        least = 1e-4 if local.unit < 1e-12 else 2e-2
        limit = min(max(least, 8 * scheme.accuracy(noise)), 0.5)
        rounding = local.unit * float(np.abs(local.y).max(initial=0.0))
        jitter = (noise - local.unit) * float(np.linalg.norm(local.y))
        terms = 1 + np.bincount(self.columns.pattern.rows, minlength=local.outputs.size)
        floor = 16 * terms * (rounding + jitter)
        if scheme.name == "complex-step":  # nothing is subtracted there
            floor = 16 * terms * local.unit * float(np.abs(seen).max(initial=0.0))
        told, bound = np.zeros(seen.size), np.zeros(seen.size)
        with np.errstate(invalid="ignore", over="ignore"):
            for i, j, quotient in self.entries:
                np.add.at(told, i, quotient * made[j])
                np.add.at(bound, i, np.abs(quotient * made[j]))
            gap = np.abs(seen - told)
            self.wrong = np.flatnonzero(gap > limit * np.maximum(bound, np.abs(seen)) + floor)
        return bool(self.wrong.size)

    def accuse(self, differences: Differences) -> None:
        """Ask again nearby, where the noise is measured anew; refuse the pattern if it is wrong there too."""
        columns = self.columns
        near = differences.nearby(self.steps.local, self.lengths)
        noise = differences.noisier(near)
        there = Columns(
            Steps(differences.scheme, near),
            columns.pattern,
            columns.groups,
            differences.steps(near),
        )
        again = Direction(there, 11)
        stream = differences.routine.stream([*there.points(""), *again.points("")])
        again.entries += there.quotients(stream)
        if again.disagrees(stream, noise):
            again.refuse(differences)

    def refuse(self, differences: Differences) -> None:
        """Name an entry that the pattern misses."""
        local = self.steps.local
        row = int(self.wrong[0])
        column = self._missing(row, differences)
        found = f"sparsity= misses entries in at least {self.wrong.size} of {local.outputs.size} rows"
        if column is None:
            found += f", the first is row {row}"
        else:
            k, index = local.inputs.where(column)
            name = differences.site.names[local.moving[k]]
            element = f"{name}[{', '.join(map(str, index))}]" if index else name
            found += f"; row {row} depends on column {column}, which is `{element}`"
        raise ExternalGradientError.about(
            differences.where,
            found=found,
            expected="a pattern with every entry of the Jacobian that may be other than zero",
            why="columns without a common row are moved together: one that is missing is taken for another",
            fix="add the entries to the pattern, or leave sparsity= out",
        )

    def _missing(self, row: int, differences: Differences) -> int | None:
        """Find a column that a row depends on and the pattern does not know, by halves."""
        local, pattern = self.steps.local, self.columns.pattern
        known = pattern.columns[pattern.rows == row]
        left = np.setdiff1d(np.arange(local.inputs.size), known)
        while left.size > 1:
            halves = np.array_split(left, 2)
            left = halves[int(np.argmax([self._moved(row, half, differences) for half in halves]))]
        return int(left[0]) if left.size and self._moved(row, left, differences) > 0 else None

    def _moved(self, row: int, columns: Array, differences: Differences) -> float:
        shift = np.zeros(self.steps.local.inputs.size)
        shift[columns] = self.shift[columns]
        stream = differences.routine.stream(self.steps.points(shift, "while its sparsity was confirmed"))
        return float(abs(self.steps.change(shift, stream)[0][row]))
