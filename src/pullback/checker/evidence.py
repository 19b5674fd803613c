"""Evidence: the true and the claimed gradient beside each other, for several cotangents, at one failing
point.

Every hypothesis of a cause is a comparison of whole vectors, so chance agreement is out of the question.
The truth is the plain gradient of the body where the derivative test confirms it, else a Jacobian by
differences of a small input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from pullback.checker.directions import floor_of, signed
from pullback.checker.numeric import derivative_test
from pullback.checker.oracle import body_gradient
from pullback.checker.problem import Problem
from pullback.checker.promises import broken
from pullback.checker.settings import Settings
from pullback.checker.space import Space
from pullback.dtypes import double
from pullback.view.subject import Array, Arrays, Subject

COLUMNS = 72
# Both err by the fourth power of the step.
AROUND = ((1.0, 8.0), (-1.0, -8.0), (2.0, -1.0), (-2.0, 1.0))
AHEAD = ((1.0, 48.0), (2.0, -36.0), (3.0, 16.0), (4.0, -3.0))


def differences(problem: Problem, entries: Sequence[int] | None = None) -> Array:
    """Measure the Jacobian, outputs by inputs, by four-point differences: all of it, or of these entries."""
    unit = problem.unit
    h = unit ** (1 / 5)
    columns = []
    scale = np.maximum(np.abs(problem.x), floor_of(problem.x))
    for i in range(problem.x.size) if entries is None else entries:
        total, steps = np.zeros_like(problem.y), 0.0
        e = np.zeros_like(problem.x)
        e[i] = scale[i]
        with np.errstate(invalid="ignore"):
            for t, weight in _stencil(problem, i, 2 * h * e[i]):
                reached, y = problem.evaluate(problem.x + t * h * e)
                total += weight * (y - problem.y)
                steps += weight * (reached[i] - problem.x[i])
        columns.append(total / steps)
    return np.stack(columns, axis=1)


def _stencil(problem: Problem, i: int, reach: float) -> tuple[tuple[float, float], ...]:
    """Give the steps of a difference and their weights: on both sides, or on the one that has room."""
    if problem.high is not None and problem.x[i] + reach > problem.high[i]:
        return tuple((-t, -weight) for t, weight in AHEAD)
    if problem.low is not None and problem.x[i] - reach < problem.low[i]:
        return AHEAD
    return AROUND


@dataclass
class Evidence:
    """Hold truth and claim at one point."""

    subject: Subject
    settings: Settings
    order: int = 1
    # Whether the body's gradient was confirmed at another point already; None asks here.
    trusted: bool | None = None
    cache: dict[bytes, Array] = field(default_factory=dict)
    fresh: list[Evidence] | None = None
    # The one input to look at; None looks at all.
    alone: int | None = None
    around: Evidence | None = None  # the evidence for all inputs, of which this looks at one

    def __post_init__(self) -> None:
        self.problem = Problem.of(self.subject)
        self.rng = self.settings.rng(77)
        self.vs = [signed(self.rng, self.problem.y.size) for _ in range(3)]
        self.claimed = [self.problem.gradient(v) for v in self.vs]

    @cached_property
    def autodiff(self) -> bool:
        """Tell whether the body's plain gradient is confirmed by differences here.

        With a surrogate inside it is no derivative: it is what the gradient around that should be.
        """
        body = self.subject.body_pullback
        if body is None:
            return False
        if self.subject.believes:
            return True
        if self.trusted is not None:
            return self.trusted
        problem = replace(self.problem, pullback=body, silent=set())
        try:
            return derivative_test(problem, self.rng, self.settings).verdict == "right" and not problem.silent
        except Exception:  # the body need not be differentiable
            return False

    @property
    def tolerance(self) -> float:
        """Give the relative difference that still counts as equal."""
        if self.problem.unit > 1e-12:
            return 30 * self.problem.unit**0.5 if not self.autodiff else 300 * self.problem.unit
        return 1e-7 if self.autodiff else 1e-5

    def _problem_at(self, inputs: Arrays) -> Problem:
        subject = self.subject
        return Problem(
            subject.oracle_forward, subject.pullback, inputs, subject.differentiable, limits=subject.limits
        )

    def true_at(self, inputs: Arrays, v: Array) -> Array | None:
        """Give the true gradient at inputs of the same shapes, or None when it cannot be had."""
        try:
            problem = self._problem_at(inputs)
        except Exception:  # outside the domain
            return None
        if problem.codomain.shapes != self.problem.codomain.shapes or not np.isfinite(problem.y).all():
            return None
        if self.autodiff:
            found = body_gradient(self.subject, problem, v)
        elif problem.x.size <= COLUMNS:
            key = problem.x.tobytes() + b"".join(a.tobytes() for a in inputs if a.dtype.kind in "iub")
            if key not in self.cache:
                self.cache[key] = differences(problem)
            found = v @ self.cache[key]
        else:
            found = None
        return found if found is not None and np.isfinite(found).all() else None

    def claimed_at(self, inputs: Arrays, v: Array) -> Array | None:
        """Give the claimed gradient at other inputs."""
        try:
            problem = self._problem_at(inputs)
            return problem.gradient(v) if problem.codomain.shapes == self.problem.codomain.shapes else None
        except Exception:  # outside the domain, or of another shape
            return None

    @property
    def blind(self) -> bool:
        """Tell whether the point is too large for what causes look at."""
        return self.true is None or self.jacobians is None

    @cached_property
    def true(self) -> list[Array] | None:
        """Give the true gradients for every cotangent."""
        found = [self.true_at(self.subject.inputs, v) for v in self.vs]
        return None if any(t is None for t in found) else [t for t in found if t is not None]

    def close(self, a: Array, b: Array, factor: float = 1.0) -> bool:
        """Tell whether two vectors are the same up to the evidence's own error."""
        if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
            return False
        size = np.maximum(np.abs(a), np.abs(b))
        if not size.any():
            return True
        return bool((np.abs(a - b) <= factor * self.tolerance * (size + float(size.max()))).all())

    def differs(self, a: Array, b: Array) -> Array:
        """Mark entries that certainly differ."""
        size = np.maximum(np.abs(a), np.abs(b))
        typical = float(size.max()) if size.size else 0.0
        return np.asarray(np.abs(a - b) > 10 * self.tolerance * size + self.tolerance * typical)

    # views by input

    @property
    def count(self) -> int:
        """Count the differentiable inputs."""
        return len(self.problem.chosen)

    def name(self, place: int) -> str:
        """Name an input by its place among the differentiable ones."""
        return self.subject.names[self.problem.chosen[place]]

    def array(self, place: int) -> Array:
        """Give an input."""
        return self.subject.inputs[self.problem.chosen[place]]

    def part(self, vector: Array, place: int) -> Array:
        """Take one input's share of a packed vector."""
        return vector[self.problem.domain.part(place)]

    def shaped(self, vector: Array, place: int) -> Array:
        """Take one input's share in its shape (complex where the input is)."""
        return self.wide.unpack(vector)[place]

    @cached_property
    def wide(self) -> Space:
        """Know the shapes of the inputs with wide dtypes, so that nothing is rounded."""
        domain = self.problem.domain
        return Space(domain.shapes, tuple(map(double, domain.dtypes)))

    @cached_property
    def outputs(self) -> Arrays:
        """Give the outputs with wide dtypes."""
        codomain = self.problem.codomain
        return Space(codomain.shapes, tuple(map(double, codomain.dtypes))).unpack(self.problem.y)

    @cached_property
    def wrong_inputs(self) -> list[int]:
        """List the inputs whose gradient is wrong."""
        if self.alone is not None:
            return [self.alone]
        if self.true is None:
            return []
        silent = [p for p, k in enumerate(self.problem.chosen) if k in self.problem.silent]
        return [
            p
            for p in range(self.count)
            if p not in silent
            and any(
                not self.close(self.part(t, p), self.part(c, p), 10) for t, c in zip(self.true, self.claimed)
            )
        ]

    def wrong_entries(self, place: int) -> Array:
        """Mark the entries of an input whose gradient is wrong for some cotangent."""
        assert self.true is not None
        pairs = [(self.shaped(t, place), self.shaped(c, place)) for t, c in zip(self.true, self.claimed)]
        return np.asarray(np.logical_or.reduce([self.differs(t, c) for t, c in pairs]))

    def fails(self, place: int) -> bool:
        """Tell whether the derivative test fails where one input is moved alone."""
        support = np.zeros(self.problem.x.size, bool)
        support[self.problem.domain.part(place)] = True
        rng = self.settings.rng(23)
        return derivative_test(self.problem, rng, self.settings, support=support).verdict == "wrong"

    def sifted(self) -> Evidence:
        """Keep the wrong inputs that fail alone: at a kink a claim is a choice, and differs from another."""
        if len(self.wrong_inputs) > 1:
            self.wrong_inputs = [p for p in self.wrong_inputs if self.fails(p)] or self.wrong_inputs
        return self

    def only(self, place: int) -> Evidence:
        """Look at one wrong input alone."""
        return Evidence(
            self.subject, self.settings, self.order, self.autodiff, self.cache, self.fresh, place, self
        )

    def unmoved(self, place: int) -> bool:
        """Tell whether the claim for an input does not depend on the inputs at all."""
        other = self.elsewhere()
        if other is None:
            return False
        return self.close(
            self.part(other.problem.gradient(self.vs[0]), place), self.part(self.claimed[0], place)
        )

    def explains(self, guess: Callable[[Array], Array | None]) -> bool:
        """Tell whether a guess at the claim, by its cotangent, holds for every wrong input.

        It is asked for one cotangent after the other, until it fails: nearly every guess fails at the first.
        """
        return self._meets(guess, self.claimed)

    def is_truth_at(self, inputs: Arrays) -> bool:
        """Tell whether the claim is the truth at other inputs.

        Where an entry is right whose own values are others there, a branch is wrong, and no operand.
        """
        given, places = self.subject.inputs, self.wrong_inputs
        for p in places:
            slopes = np.any([self.shaped(t, p) != 0 for t in self.true or ()], axis=0)
            right = slopes & ~self.wrong_entries(p)
            same = [k for k, x in enumerate(given) if x.shape == right.shape == inputs[k].shape]
            if any((right & (inputs[k] != given[k])).any() for k in same):
                return False
        return self.explains(partial(self.true_at, inputs))

    def claims_truth(self, claim: Callable[[Array], Array | None]) -> bool:
        """Tell whether a claim made elsewhere, by its cotangent, is the truth here for every wrong input."""
        return self.true is not None and self._meets(claim, self.true)

    def _meets(self, guess: Callable[[Array], Array | None], goal: list[Array]) -> bool:
        for v, there in zip(self.vs, goal):
            g = guess(v)
            if g is None or not all(
                self.close(self.part(g, p), self.part(there, p), 10) for p in self.wrong_inputs
            ):
                return False
        return True

    @property
    def is_small(self) -> bool:
        """Tell whether a Jacobian is asked for here."""
        m, n = self.problem.y.size, self.problem.x.size
        return m * n <= 2500 and m <= 64

    @cached_property
    def jacobians(self) -> tuple[Array, Array] | None:
        """Give the true and the claimed Jacobian (outputs by inputs) of a small problem."""
        if not self.is_small:
            return None
        true, claimed = [], []
        for e in np.eye(self.problem.y.size):
            t = self.true_at(self.subject.inputs, e)
            if t is None:
                return None
            true.append(t)
            claimed.append(self.problem.gradient(e))
        return np.stack(true), np.stack(claimed)

    def every_row(self, is_so: Callable[[Array], bool]) -> bool:
        """Tell whether each row of the true Jacobian of a small problem is so; asked until one is not."""
        if not self.is_small:
            return False
        rows = (self.true_at(self.subject.inputs, e) for e in np.eye(self.problem.y.size))
        return all(row is not None and is_so(row) for row in rows)

    def elsewhere(self) -> Evidence | None:
        """Gather the same evidence at another generic point, to break coincidences."""
        return self._elsewhere

    @cached_property
    def _elsewhere(self) -> Evidence | None:
        if self.around is not None and self.alone is not None:
            other = self.around.elsewhere()
            return other if other is None or self.alone not in other.wrong_inputs else other.only(self.alone)
        rng = self.settings.rng(78)
        x = self.problem.x
        draws = [signed(rng, x.size) * floor_of(x) * 16, x * rng.uniform(0.5, 1.5, x.size)]
        far = self.problem.with_x(draws[0])
        # Differences alone do not tell that a point is outside of the domain, nor does autodiff of a solver.
        if not self.autodiff or broken(self.subject.inputs, far, self.subject.names) is not None:
            draws.reverse()
        for draw in draws:
            other = self.moved(draw)
            if other is not None:
                return other
        return None

    def moved(self, x: Array) -> Evidence | None:
        """Gather the same evidence at a point; None where that is outside of the domain."""
        try:
            subject = self.subject.at(self.problem.with_x(x))
            other = Evidence(subject, self.settings, self.order, self.autodiff)
        except Exception:
            return None
        known = np.isfinite(other.problem.y).all() and other.true is not None
        return other if known and all(np.isfinite(c).all() for c in other.claimed) else None
