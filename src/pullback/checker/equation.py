"""One measured derivative beside the claimed one, and what a test says of many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pullback.checker.directions import signed
from pullback.checker.problem import Problem
from pullback.checker.steps import Line, anchor, dot, intercept, ladder_top
from pullback.view.subject import Array

Verdict = Literal["right", "wrong", "undecided"]


@dataclass(frozen=True)
class Equation:
    """Hold one direction against one cotangent."""

    measured: float
    claimed: float
    error: float
    scale: float
    reason: str = ""
    # A discrepancy below this may be a value of order one cancelling inside, whose rounding no output shows.
    hidden: float = 0.0
    size: float = 0.0  # of the cotangent
    natural: float = 0.0  # of the outputs, by which a derivative that is zero is measured
    unit: float = 0.0

    @property
    def vanishes(self) -> bool:
        """Tell whether both sides are zero, as far as the rounding of the outputs can tell.

        The bound is what rounding makes of the smallest step, whichever step was the best one here.
        """
        return bool(max(self.scale, self.error) <= 4 * self.unit**0.5 * self.natural)

    @property
    def discrepancy(self) -> float:
        """Give the difference relative to the scale."""
        return abs(self.measured - self.claimed) / self.scale if self.scale else 0.0


@dataclass(frozen=True)
class Outcome:
    """Hold the answer of a derivative test and what it rests on."""

    verdict: Verdict
    resolution: float = np.inf
    reason: str = ""
    worst: Equation | None = None
    cotangent: Array | None = None
    direction: Array | None = None
    edge: bool = False

    @property
    def discrepancy(self) -> float:
        """Give the largest relative discrepancy seen."""
        return self.worst.discrepancy if self.worst else 0.0


def length(a: Array) -> float:
    """Give the Euclidean norm, without overflow."""
    size = float(np.abs(a).max(initial=0.0))
    return size * float(np.linalg.norm(a / size)) if 0 < size < np.inf else size


def noise_of(
    problem: Problem, v: Array, g: Array, rng: np.random.Generator, samples: list[tuple[Array, Array]]
) -> float:
    """Estimate how much ⟨v, f⟩ jitters under perturbations near rounding, linear part removed."""
    if not samples:
        unit = problem.unit
        sizes = (4 * unit, 64 * unit, float(np.sqrt(4 * unit * anchor(unit) / 4)))
        floor = np.where(problem.still(), 0.0, np.abs(problem.x))
        samples += [problem.evaluate(problem.x + d * floor * signed(rng, problem.x.size)) for d in sizes]
    used = v != 0
    finite = [(x, y) for x, y in samples if np.isfinite(y[used]).all()]
    jitter = [abs(dot(v[used], y[used] - problem.y[used]) - dot(g, x - problem.x)) for x, y in finite]
    rounding = problem.unit * length(v[used] * problem.y[used]) * (2 / 3) ** 0.5
    return float(max([rounding, *jitter]))


def equation(problem: Problem, line: Line, v: Array, g: Array, *, noise: float, target: float) -> Equation:
    """Measure one derivative along a line and set it beside the claim."""
    claimed = dot(g, line.u)
    size = length(g * line.u)
    found = intercept(line, v, g, noise=noise, unit=problem.unit, target=target * size)
    measured = claimed + found.value
    scale = max(size, abs(measured) if np.isfinite(measured) else 0.0)
    # The claim is rounded too: to its own size, and after a cancellation to that of the outputs.
    used = v != 0
    rounding = 2 * scale + 8 * length(v[used] * problem.y[used])
    # The same holds for the claim, whose rounding the direction multiplies.
    reach = max(32 / ladder_top(problem.unit), 64 * float(np.abs(line.u).max(initial=0.0)))
    error = found.error + problem.unit * rounding
    if abs(measured) <= error and not problem.y[used].any():
        reach *= 64  # nothing is left of what cancels inside
    hidden = problem.unit * float(np.linalg.norm(v)) * reach
    return Equation(
        measured,
        claimed,
        error,
        scale,
        found.reason,
        hidden,
        float(np.linalg.norm(v)),
        length(v[used] * problem.y[used]),
        problem.unit,
    )


def jitter(problem: Problem, vs: Sequence[Array], rng: np.random.Generator, draws: int = 8) -> float:
    """Measure how far a pullback moves when its arguments move by a few roundings."""
    moved = [0.0]
    for v in vs:
        g = problem.gradient(v)
        for _ in range(draws):
            near = v * (1 + 4 * problem.unit * signed(rng, v.size))
            x = problem.x * (1 + 4 * problem.unit * signed(rng, problem.x.size))
            for other in (problem.gradient(near), problem.gradient(v, x)):
                moved.append(float(np.abs(other - g).max(initial=0.0)))
    return max(m for m in moved if np.isfinite(m))
