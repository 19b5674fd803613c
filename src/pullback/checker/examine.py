"""Examine one point: the cheap oracle first, then the derivative test, then what excuses a failure.

A right rule must never be called wrong because of the point. So a failure at one of the checker's own
points must be large, and at an edge the host's own choice is accepted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pullback.checker.directions import signed
from pullback.checker.equation import Outcome
from pullback.checker.numeric import derivative_test
from pullback.checker.oracle import body_gradient, disagreement
from pullback.checker.points import Point, promise
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.dtypes import double
from pullback.view.subject import Array, Arrays, Cotangents, Subject

# How large a discrepancy must be at a point that the user did not choose.
OWN, EXTREME = 1e-5, 1e-2


def examine(
    subject: Subject, point: Point, rng: np.random.Generator, settings: Settings, *, own: bool
) -> Outcome:
    """Say whether the claimed gradient is right at one point."""
    problem = Problem.of(subject.at(point.inputs))
    if problem.x.size == 0 or problem.y.size == 0:
        return Outcome("undecided", reason="empty")
    agrees, apart = screen(subject, problem, rng)
    if own and agrees:
        return Outcome("right", problem.unit**0.5, "autodiff")
    support = apart if apart is not None and apart.any() and problem.x.size > 1 else None
    outcome = derivative_test(problem, rng, settings)
    if own and outcome.verdict != "wrong" and support is not None:
        # What a few entries claim can drown among large ones: move those alone.
        outcome = derivative_test(problem, rng, settings, support=support)
    if outcome.verdict != "wrong":
        return outcome
    if reads_one_triangle(problem):
        return derivative_test(symmetric(problem), rng, settings)
    if outcome.edge and (agrees or subject.body_pullback is None) and (own or not subject.is_rule):
        return replace(outcome, verdict="undecided", reason="kink")
    if outcome.reason == "nonfinite":
        if not subject.is_rule and outcome.edge:
            return replace(outcome, verdict="undecided")
        # A formula may have a hole at a point that nobody uses: worth a word, not a verdict.
        return (
            replace(outcome, verdict="undecided")
            if own and not plain_hole(subject, problem, outcome, point)
            else outcome
        )
    if own and point.extreme and problem.unit > 1e-12:
        return replace(outcome, verdict="undecided", reason="noise")
    if own and outcome.discrepancy < (EXTREME if point.extreme else OWN):
        return replace(outcome, verdict="undecided", reason="noise")
    return outcome


def screen(subject: Subject, problem: Problem, rng: np.random.Generator) -> tuple[bool, Array | None]:
    """Compare the claim with the plain gradient of the body: do they agree, and where do they not."""
    v = signed(rng, problem.y.size)
    claimed = problem.gradient(v)
    plain = body_gradient(subject, problem, v)
    if plain is None:
        return False, None
    apart = disagreement(claimed, plain, problem.unit) & ~problem.still()
    return not apart.any() and bool(np.isfinite(claimed).all()), apart


def plain_hole(subject: Subject, problem: Problem, outcome: Outcome, point: Point) -> bool:
    """Tell whether the hole is at an ordinary value of an only input, and plain autodiff has none there."""
    if (
        outcome.edge
        or point.extreme
        or len(problem.chosen) > 1
        or np.abs(problem.x).max() > 4
        or outcome.cotangent is None
    ):
        return False
    plain = body_gradient(subject, problem, outcome.cotangent)
    return plain is not None and bool(np.isfinite(plain).all())


def _symmetric_inputs(problem: Problem) -> list[int]:
    kinds = {"symmetric", "positive definite"}
    return [
        k
        for k in problem.chosen
        if promise(problem.inputs[k].astype(double(problem.inputs[k].dtype))) in kinds
    ]


def reads_one_triangle(problem: Problem) -> bool:
    """Tell whether the function looks at only one triangle of a symmetric input, as factorisations do."""
    for k in _symmetric_inputs(problem):
        x = problem.inputs[k]
        ones = np.ones(x.shape[-2:])
        for triangle in (np.triu(ones, 1), np.tril(ones, -1)):
            moved = tuple(
                (a * (1 + 0.37 * triangle)).astype(a.dtype) if i == k else a
                for i, a in enumerate(problem.inputs)
            )
            outputs = problem.evaluate(problem.domain.pack([moved[i] for i in problem.chosen]))[1]
            if np.array_equal(outputs, problem.y):
                return True
    return False


def symmetric(problem: Problem) -> Problem:
    """Ask the same of symmetric directions only: there every convention of a factorisation agrees."""
    which = set(_symmetric_inputs(problem))

    def halves(arrays: Cotangents | Arrays) -> tuple[Array | None, ...]:
        return tuple(
            a if a is None or k not in which else ((a + np.conj(np.swapaxes(a, -1, -2))) / 2).astype(a.dtype)
            for k, a in enumerate(arrays)
        )

    def forward(inputs: Arrays) -> Arrays:
        return problem.forward(tuple(a for a in halves(inputs) if a is not None))

    def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
        return halves(problem.pullback(inputs, cotangents))

    return Problem(forward, pullback, problem.inputs, problem.differentiable)
