"""Edges: points where the derivative is a choice, or does not exist.

At a kink or a tie the one-sided slopes bound every honest choice. Single coordinates and common shifts of
equal entries are tested, because along a mixed direction two honest choices can leave the interval
together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pullback.checker.directions import floor_of, floored, signed
from pullback.checker.equation import Equation, Outcome
from pullback.checker.problem import Problem
from pullback.checker.steps import Line, anchor, dot
from pullback.view.subject import Array

COORDINATES, PAIRS = 24, 8


@dataclass(frozen=True)
class Slopes:
    """Hold one-sided slopes of every output along a direction."""

    right: Array
    left: Array
    kinked: Array
    broken: Array
    slack: Array

    def interval(self, v: Array) -> tuple[float, float, bool]:
        """Bound ⟨v, slope⟩ over every choice at the kinks, and tell whether there was one."""
        if (self.broken & (v != 0)).any():
            return np.nan, np.nan, True
        a, b = v * self.right, v * self.left
        mean = (a + b) / 2
        low = np.where(self.kinked, np.minimum(a, b), mean)
        high = np.where(self.kinked, np.maximum(a, b), mean)
        loose = float(np.sqrt(np.sum(np.square(v * self.slack))))
        used = v != 0
        return (
            float(low[used].sum()) - loose,
            float(high[used].sum()) + loose,
            bool((self.kinked & used).any()),
        )


def slopes_along(problem: Problem, u: Array, line: Line | None = None) -> Slopes | None:
    """Measure the one-sided slopes at two small steps, and sort outputs into smooth, kinked and broken."""
    line = line or Line(problem.evaluate, problem.x, u, {0.0: (problem.x, problem.y)})
    h = anchor(problem.unit)
    pairs = []
    with np.errstate(invalid="ignore", over="ignore"):
        for step in (h, h / 4):
            ahead = (line.at(step)[1] - problem.y) / step
            behind = (problem.y - line.at(-step)[1]) / step
            # One side outside the domain: the other side alone is the derivative.
            pairs.append(
                (np.where(np.isfinite(ahead), ahead, behind), np.where(np.isfinite(behind), behind, ahead))
            )
    (a1, b1), (a2, b2) = pairs
    if not np.isfinite(a2).any():
        return None
    size = np.maximum(np.abs(a2), np.abs(b2))
    slack = 3 * problem.unit * np.abs(problem.y) / h + np.sqrt(problem.unit) * size
    wide, narrow = np.abs(a1 - b1), np.abs(a2 - b2)
    apart = narrow > 1e-3 * size + 4 * slack
    # A slope that grows as the step shrinks does not exist; one that shrinks is going to zero.
    moving = np.maximum(np.abs(a2) - 1.3 * np.abs(a1), np.abs(b2) - 1.3 * np.abs(b1)) > 4 * slack
    kinked = apart & (narrow > 0.5 * wide) & ~moving
    broken = ~np.isfinite(size) | (apart & (narrow > 1.7 * wide)) | moving
    return Slopes(a2, b2, kinked, broken, slack)


def diverges(problem: Problem, u: Array, v: Array) -> bool:
    """Tell whether the slope has no limit here, not even a slow one: x·log(x) at zero.

    A slope that converges changes less and less as the step shrinks; that of a logarithm changes by the same
    amount each time.
    """
    h = anchor(problem.unit)
    for side in (1.0, -1.0):
        slopes = []
        for step in (h, h / 4, h / 16):
            with np.errstate(invalid="ignore", over="ignore"):
                slopes.append(dot(v, problem.evaluate(problem.x + side * step * u)[1] - problem.y) / step)
        first, second = slopes[1] - slopes[0], slopes[2] - slopes[1]
        grows = abs(second) > max(0.5 * abs(first), 1e-3 * abs(slopes[2]))
        if np.isfinite(slopes).all() and grows:
            return True
    return False


def groups_of(x: Array) -> list[Array]:
    """Collect the entries that share a value with another."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return [np.flatnonzero(inverse == k) for k in np.flatnonzero(counts > 1)]


def at_edge(problem: Problem, lines: list[Line], rng: np.random.Generator) -> Outcome | None:
    """Decide whether a failing point is an edge, and whether the claim is one of its honest choices.

    None means that there is no edge here: the failure stands.
    """
    kinds = [s for s in (slopes_along(problem, line.u, line) for line in lines) if s is not None]
    if not any((s.kinked | s.broken).any() for s in kinds):
        return None
    v = signed(rng, problem.y.size)
    for s in kinds:
        v = np.where(s.broken, 0.0, v)
    if not v.any():
        return Outcome("undecided", reason="kink", edge=True)
    g = problem.gradient(v)
    if not np.isfinite(g).all():
        return Outcome("undecided", reason="nonfinite", edge=True)
    still = problem.still()
    order = rng.permutation(np.flatnonzero(~still))
    special = np.isin(order, np.concatenate([*groups_of(problem.x), np.flatnonzero(problem.x == 0)]))
    order = order[np.argsort(~special, kind="stable")][:COORDINATES]
    directions = [np.eye(1, problem.x.size, i)[0] for i in order]
    directions += [np.isin(np.arange(problem.x.size), group) & ~still for group in groups_of(problem.x)[:3]]
    decided, rough = 0, None
    for number, base in enumerate(directions):
        u = base * np.maximum(np.abs(problem.x), floor_of(problem.x))
        slopes = slopes_along(problem, u)
        if slopes is None:
            continue
        known, found = denied(slopes, v, g, u)
        decided += known
        if found and number < len(order):
            # An output may be level along one entry, and still follow it in one of its honest choices.
            rough = bent(problem, rng) if rough is None else rough
            asked = np.where(rough & ~slopes.kinked, 0.0, v)
            _, found = denied(slopes, asked, problem.gradient(asked), u)
        if found:
            return Outcome("wrong", 1e-3, "", found, v, u, edge=True)
    if not decided:
        return Outcome("undecided", reason="kink", edge=True)
    masked = masked_failure(problem, lines, kinds, bent(problem, rng) if rough is None else rough, rng)
    return masked or Outcome("right", 1e-3, "kink", edge=True)


def denied(slopes: Slopes, v: Array, g: Array, u: Array) -> tuple[bool, Equation | None]:
    """Tell whether the choices along a line are known, and give the equation that a claim fails with them."""
    low, high, _ = slopes.interval(v)
    if not np.isfinite([low, high]).all():
        return False, None
    claimed = dot(g, u)
    scale = max(abs(low), abs(high), abs(claimed))
    fails = max(low - claimed, claimed - high) > 1e-3 * scale
    return True, Equation(low if claimed < low else high, claimed, 0.0, scale) if fails else None


def bent(problem: Problem, rng: np.random.Generator) -> Array:
    """Mark the outputs whose slopes do not add up as directions do, in one of a few pairs.

    The middle one of three equal values, in order, is smooth along every line, and has no gradient.
    """
    marked = np.zeros(problem.y.size, bool)
    drawn = [floored(rng, problem.x) for _ in range(PAIRS)]
    single = [slopes_along(problem, u) for u in drawn]
    for k, u in enumerate(drawn):
        found = (single[k], single[k - 1], slopes_along(problem, u + drawn[k - 1]))
        if all(s is not None for s in found):
            one, other, both = ((s.right + s.left) / 2 for s in found if s is not None)
            slack = sum(s.slack for s in found if s is not None)
            with np.errstate(invalid="ignore"):
                marked |= np.abs(both - one - other) > 1e-3 * (np.abs(one) + np.abs(other)) + 4 * slack
    return marked


def masked_failure(
    problem: Problem, lines: list[Line], kinds: list[Slopes], rough: Array, rng: np.random.Generator
) -> Outcome | None:
    """Test the outputs that are smooth here, with the others' cotangent set to zero."""
    for s in kinds:
        rough = rough | s.kinked | s.broken
    v = np.where(rough, 0.0, signed(rng, problem.y.size))
    if not v.any():
        return None
    g = problem.gradient(v)
    fails = []
    for line, s in zip(lines, kinds):
        low, high, _ = s.interval(v)
        claimed = dot(g, line.u)
        scale = max(float(np.linalg.norm(g * line.u)), abs(low), abs(high))
        if np.isfinite([low, high, claimed]).all() and max(low - claimed, claimed - high) > 1e-3 * scale:
            fails.append(
                Outcome(
                    "wrong", 1e-3, "", Equation((low + high) / 2, claimed, 0.0, scale), v, line.u, edge=True
                )
            )
    return fails[0] if len(fails) >= 2 else None
