"""Examine one point: the cheap oracle first, then the derivative test, then what excuses a failure.

A right rule must never be called wrong because of the point. So a failure at one of the checker's own
points must be large, and at an edge the host's own choice is accepted.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from pullback.checker.bounds import lost_bound
from pullback.checker.directions import floor_of, floored, signed
from pullback.checker.equation import Outcome
from pullback.checker.numeric import derivative_test
from pullback.checker.oracle import body_gradient, disagreement
from pullback.checker.points import Point
from pullback.checker.problem import Problem
from pullback.checker.promises import WEAK, broken
from pullback.checker.settings import Settings
from pullback.checker.space import SINGLE
from pullback.checker.steps import anchor, dot
from pullback.checker.triangles import mirrored_claims, one_triangle, symmetric, unread
from pullback.view.subject import Array, Arrays, Subject

# How large a discrepancy must be at a point that the user did not choose.
OWN, EXTREME = 1e-5, 1e-2
# No wrong formula is off by less, beside a gradient of its own size: a solver's tolerance leaves as much.
FINEST = 2.0**-30
UNSTEADY = ("noise", "rough")  # why nothing is decided: the function is no smooth one, as it is computed
BESIDE = 1e3  # times the gap: entries that claim no more could hide one of their own size


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
    if subject.believes and agrees and outcome.verdict != "right":
        return Outcome("right", problem.unit**0.5, "autodiff")
    if own and outcome.verdict != "wrong" and support is not None:
        # What a few entries claim can drown among large ones: move those alone.
        outcome = derivative_test(problem, rng, settings, support=support)
    if outcome.verdict == "undecided" and outcome.reason == "rough":
        outcome = in_fewer_digits(problem, rng, settings) or outcome
    demanded = settings.demanded(problem.unit)
    if outcome.verdict != "wrong":
        return outcome if subject.is_rule else in_demanded_digits(outcome, demanded)
    outcome, problem = among_symmetric(subject, problem, outcome, rng, settings)
    if outcome.verdict != "wrong":
        return outcome
    if 0 < outcome.discrepancy < FINEST:
        hidden = among_small_claims(problem, outcome, rng, settings)
        if hidden is None:
            return replace(outcome, verdict="right", resolution=outcome.discrepancy, reason="coarse")
        outcome = hidden
    if not subject.is_rule:
        outcome = in_demanded_digits(outcome, demanded)
        if outcome.verdict != "wrong":
            return outcome
    return excused(subject, point, problem, outcome, agrees=agrees, own=own)


def among_symmetric(
    subject: Subject, problem: Problem, outcome: Outcome, rng: np.random.Generator, settings: Settings
) -> tuple[Outcome, Problem]:
    """Test a rule of symmetric matrices along such alone, if that speaks better of it than `outcome` does."""
    half = one_triangle(problem, anything=not subject.is_rule)
    if half is not None and not subject.is_rule:
        # What a framework gives for the triangle that is not read is a convention, too.
        outcome = derivative_test(problem, rng, settings, support=~unread(problem))
        outcome = in_demanded_digits(outcome, settings.demanded(problem.unit))
        if outcome.verdict != "wrong":
            return outcome, problem
    averaged = None if half is not None else mirrored_claims(problem, outcome.cotangent)
    if half is None and not averaged:
        return outcome, problem
    mirrored = symmetric(problem if half is None else half, averaged)
    found = derivative_test(mirrored, rng, settings)
    better = found.verdict != "wrong" or found.discrepancy < outcome.discrepancy
    return (found, mirrored) if better else (outcome, problem)


def excused(
    subject: Subject, point: Point, problem: Problem, outcome: Outcome, *, agrees: bool, own: bool
) -> Outcome:
    """Call a failure undecided where the point explains it: random numbers, an edge, a hole, rounding."""
    if subject.draws and not subject.is_rule and outcome.worst is not None and outcome.worst.claimed == 0:
        return replace(outcome, verdict="undecided", reason="random")
    if outcome.edge and (agrees or subject.body_pullback is None) and (own or not subject.is_rule):
        return replace(outcome, verdict="undecided", reason="kink")
    if outcome.reason == "nonfinite":
        if not subject.is_rule and outcome.edge:
            return replace(outcome, verdict="undecided")
        # A formula may have a hole at a point that nobody uses: worth a word, not a verdict.
        hole = own and not plain_hole(subject, problem, outcome, point)
        return replace(outcome, verdict="undecided") if hole else outcome
    coarse = point.extreme and problem.unit > 1e-12
    if own and (coarse or outcome.discrepancy < (EXTREME if point.extreme else OWN)):
        return replace(outcome, verdict="undecided", reason="noise")
    return outcome


def among_small_claims(
    problem: Problem, outcome: Outcome, rng: np.random.Generator, settings: Settings
) -> Outcome | None:
    """Find the error of entries whose gradient is small beside others; None where a small gap is spread."""
    if outcome.cotangent is None or outcome.worst is None:
        return outcome
    size = np.maximum(np.abs(problem.x), floor_of(problem.x))
    claims = np.abs(problem.gradient(outcome.cotangent)) * size
    gap = abs(outcome.worst.measured - outcome.worst.claimed)
    small = (claims <= BESIDE * gap) & ~problem.still()
    if not small.any():
        return None
    found = derivative_test(problem, rng, settings, support=small)
    return found if found.verdict == "wrong" and found.discrepancy >= FINEST else None


def in_fewer_digits(problem: Problem, rng: np.random.Generator, settings: Settings) -> Outcome | None:
    """Test a function that computes in float32 inside as one of float32: it can pass, and not fail."""
    if problem.unit >= SINGLE:
        return None
    coarse = copy.copy(problem)
    coarse.unit = SINGLE
    found = derivative_test(coarse, rng, settings)
    return replace(found, reason="coarse") if found.verdict == "right" else None


def in_demanded_digits(outcome: Outcome, demanded: float) -> Outcome:
    """Let a framework's own operation have fewer digits: nobody here can mend it, and a pass needs no more.

    It is the same whether the directions that deny the last digits are all, or one of three.
    """
    seen = outcome.discrepancy if outcome.verdict == "wrong" else max(outcome.discrepancy, outcome.resolution)
    if outcome.worst is None or not seen < demanded:  # which is not known of what is no number
        return outcome
    return replace(outcome, verdict="right", resolution=outcome.discrepancy, reason="coarse")


def screen(subject: Subject, problem: Problem, rng: np.random.Generator) -> tuple[bool, Array | None]:
    """Compare the claim with the plain gradient of the body: do they agree, and where do they not."""
    v = signed(rng, problem.y.size)
    if subject.body_pullback is None and np.isfinite(problem.x).all() and np.isfinite(problem.y).any():
        return False, None  # there is nothing to compare with, and the derivative test asks for the claim
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


def excuse(
    subject: Subject, point: Point, outcome: Outcome, settings: Settings, given: Outcome | None = None
) -> str:
    """Say why a failure at a point of the checker's own is no verdict; nothing if it is one."""
    problem = Problem.of(subject.at(point.inputs))
    unsteady = given is not None and given.verdict == "undecided" and given.reason in UNSTEADY
    level = outcome.worst is not None and abs(outcome.worst.measured) <= outcome.worst.error
    if unsteady and not level and not backed(subject, problem, outcome):  # steps are level, and not rough
        return "that is no better than the given one, where the function is too rough to be measured"
    # An operation of the framework may choose its value at a zero; a rule that somebody wrote may not.
    promised = broken(subject.inputs, point.inputs, subject.names, zero=subject.is_rule)
    if promised is not None and (promised[0] not in WEAK or not backed(subject, problem, outcome)):
        return f"that breaks what the arguments promise: {promised[1]}"
    bound = lost_bound(subject, point.inputs)
    if bound is not None:
        return f"that breaks what the arguments promise: `{bound}` is a bound, and keeps its sign"
    if point.resized and narrow(subject.inputs, point.inputs):
        return "that has another length where an axis of two may have a meaning of its own"
    if point.extreme and not backed(subject, problem, outcome):
        return "where plain autodiff does no better"
    if not subject.is_rule and not persists(subject, point, settings):
        return "and right beside it: the framework chose a value there"
    if not outcome.edge and not smooth(problem, settings.rng(21)):
        return "where the derivative is a choice"
    return ""


def backed(subject: Subject, problem: Problem, outcome: Outcome) -> bool:
    """Tell whether the plain gradient of the body is right where the claimed one is not."""
    if not subject.is_rule or outcome.cotangent is None or outcome.direction is None or outcome.worst is None:
        return False
    plain = body_gradient(subject, problem, outcome.cotangent)
    if plain is None or not np.isfinite(plain).all():
        return False
    gap = abs(dot(plain, outcome.direction) - outcome.worst.measured)
    wrong = abs(outcome.worst.claimed - outcome.worst.measured)
    return bool(gap < 1e-2 * wrong or not np.isfinite(wrong))


def narrow(given: Arrays, inputs: Arrays) -> bool:
    """Tell whether an axis of two was made longer: real and imaginary parts, low and high."""
    return any(2 in {d for d, e in zip(x.shape, y.shape) if d != e} for x, y in zip(given, inputs))


def persists(subject: Subject, point: Point, settings: Settings) -> bool:
    """Tell whether the gradient is wrong beside the point, too."""
    problem = Problem.of(subject.at(point.inputs))
    beside = problem.with_x(problem.x + 2.0**-7 * floored(settings.rng(22), problem.x))
    try:
        found = examine(subject, replace(point, inputs=beside), settings.rng(23), settings, own=True)
    except Exception:  # outside the domain
        return False
    return found.verdict == "wrong"


def smooth(problem: Problem, rng: np.random.Generator) -> bool:
    """Tell whether slopes add up as directions do: where they do not, there is no gradient."""
    u, w = (floored(rng, problem.x) for _ in range(2))
    h = anchor(problem.unit)

    def slope(along: Array) -> Array:
        ahead, behind = problem.evaluate(problem.x + h * along), problem.evaluate(problem.x - h * along)
        with np.errstate(invalid="ignore"):
            return np.asarray((ahead[1] - behind[1]) / (2 * h))

    a, b, both = slope(u), slope(w), slope(u + w)
    if not np.isfinite([a, b, both]).all():
        return True  # another test has words for it
    size = np.abs(a) + np.abs(b)
    slack = 16 * problem.unit * np.abs(problem.y) / h + 1e-3 * (size + size.max(initial=0.0))
    return bool((np.abs(both - a - b) <= slack).all())
