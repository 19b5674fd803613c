"""Is the pullback the derivative it claims to be: at the given point, and at points of the checker's own?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from pullback.checker.budget import SHARE, Budget
from pullback.checker.drift import drifts
from pullback.checker.equation import Outcome
from pullback.checker.examine import examine, excuse
from pullback.checker.finding import Finding
from pullback.checker.needless import needless
from pullback.checker.oracle import AUTODIFF, FLOAT64, SHIPPED
from pullback.checker.points import Point, finite, own_points
from pullback.checker.probe import probe
from pullback.checker.problem import Problem, ShapeMismatchError
from pullback.checker.promises import keeping
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.checker.stopped import iterates
from pullback.checker.switches import switch_points
from pullback.checker.triangles import one_triangle
from pullback.report.block import NOTHING
from pullback.view.subject import Subject

WHY = {
    "noise": "rounding hides the derivative",
    "rough": "the function varies on the scale of rounding",
    "kink": "the derivative is a choice here",
    "stopped": "the function is computed to a tolerance, and jumps by as much as its gradient is off",
    "domain": "the function does not exist on one side",
    "nonfinite": "the function or its gradient is not finite here",
    "empty": "there are no entries",
    "random": "it draws random numbers, and says of them that they have no gradient",
    "no gradient": "no gradient flows to any input",
}
INEXACT = "where what it repeats is less exact: the error begins far from the given arguments, and grows"
UNFINISHED = "where what it iterates, to a tolerance, need not have come to its end"


@probe(rank=30)
def question(subject: Subject, settings: Settings) -> Iterator[Finding]:
    """Test the given point, then own points until one fails."""
    if subject.intent.kind == "differs" and not subject.believes:
        yield Finding(
            "derivative", "note", f"the gradient is {subject.intent}: not compared with the derivative"
        )
        yield from needless(subject, settings)
        return
    if not any(subject.differentiable):
        yield Finding(
            "derivative",
            "undecided",
            "no input is floating or complex: there is nothing to differentiate",
            reason="no gradient",
        )
        return
    if not subject.forward(subject.inputs):
        if subject.is_rule:  # somebody wrote it so: there is no question left
            yield Finding(
                "derivative", "right", "no output is floating or complex", reason=NOTHING, last=True
            )
            return
        said = "the function returned no floating or complex tensor: no gradient can flow through it"
        yield Finding("derivative", "undecided", said, reason="no gradient")
        return
    try:
        outcome = examine(subject, Point("given", subject.inputs), settings.rng(4), settings, own=False)
    except ShapeMismatchError:
        return  # the contract probe says so
    except Exception as error:  # a pullback that raises: the contract probe says so too
        yield Finding("derivative", "undecided", f"no gradient: {type(error).__name__}", reason="no gradient")
        return
    yield finding_of(subject, outcome, Point("given", subject.inputs))  # at once: it is proven
    if outcome.verdict == "wrong" or not settings.own_points:
        return
    tested, noted = 0, set()  # of each kind of note, the first is said
    # A factorisation that reads one triangle has no gradient to speak of away from symmetric matrices.
    any_square = not subject.is_rule
    symmetric_only = one_triangle(Problem.of(subject), anything=any_square) is not None
    patience, stopped = Budget(settings.budget / SHARE), ""
    drawn = own_points(subject, settings.rng(5))
    for i, point in enumerate(chain(drawn, switch_points(subject, settings.rng(9)))):
        if patience.spent:
            stopped = f"; it is slow, and no more were tried after {patience.limit:g} s"
            break
        if symmetric_only and not one_triangle(Problem.of(subject.at(point.inputs)), anything=any_square):
            continue
        try:
            found = examine(subject, point, settings.rng(6, i), settings, own=True)
        except ShapeMismatchError:
            continue
        except Exception:  # a pullback that raises at a point nobody asked for
            continue
        tested += found.verdict == "right"
        if found.reason == "nonfinite" and found.worst is not None and "hole" not in noted:
            noted.add("hole")
            yield Finding(
                "derivative",
                "note",
                f"the gradient is not finite at a point of the checker's own ({point.label}), "
                "where the slope is",
                inputs=point.inputs,
            )
        if found.verdict == "wrong" and subject.is_builtin:
            sentence = f"the host's own gradient is wrong at a point of the checker's own ({point.label})"
            yield replace(finding_of(subject, found, point), verdict="note", sentence=sentence)
            return
        why = excuse(subject, point, found, settings, outcome) if found.verdict == "wrong" else ""
        for nearer in _nearer(subject, point) if why and not symmetric_only else ():
            with contextlib.suppress(Exception):  # a pullback that raises at a point nobody asked for
                again = examine(subject, nearer, settings.rng(6, i), settings, own=True)
                if again.verdict == "wrong" and not excuse(subject, nearer, again, settings, outcome):
                    found, point, why = again, nearer, ""
                    break
        if why:
            if "excused" not in noted:
                noted.add("excused")
                said = f"not the derivative at a point of the checker's own ({point.label}) {why}"
                yield Finding("derivative", "note", said, point=point.label, inputs=point.inputs)
            continue
        loop = found.verdict == "wrong" and (
            (iterates(Problem.of(subject), settings.rng(24)) and UNFINISHED)
            or (drifts(subject, point, found, settings) and INEXACT)
        )
        if loop:
            said = f"not the derivative at a point of the checker's own ({point.label}), {loop}"
            yield Finding("derivative", "note", said, point=point.label, inputs=point.inputs)
            return
        if found.verdict == "wrong":
            yield finding_of(subject, found, point)
            return
    yield Finding(
        "derivative", "note", f"also right at {tested} points of the checker's own{stopped}", point="own"
    )


def _nearer(subject: Subject, point: Point) -> Iterator[Point]:
    """Give points beside one that breaks what the given arguments promise, which keep that."""
    for inputs in keeping(subject.inputs, point.inputs, subject.names, zero=subject.is_rule):
        if finite(subject, inputs) is not None:
            yield replace(point, inputs=inputs)


def finding_of(subject: Subject, outcome: Outcome, point: Point) -> Finding:
    """Turn an outcome into a finding."""
    at = "" if point.label == "given" else f" (at a point of the checker's own: {point.label})"
    unit = roundoff([x for x, d in zip(point.inputs, subject.differentiable) if d])
    oracle = AUTODIFF if outcome.reason == "autodiff" else FLOAT64 if unit < 1e-12 else SHIPPED
    worst = outcome.worst
    cotangents = None
    if outcome.cotangent is not None:
        cotangents = Problem.of(subject.at(point.inputs)).codomain.unpack(outcome.cotangent)
    if outcome.verdict == "wrong":
        said = "neither the derivative nor what autodiff makes of the surrogate inside"
        sentence = f"the gradient is {said if subject.believes else 'not the derivative'}{at}"
    elif subject.believes and outcome.reason == "autodiff":
        sentence = f"the gradient is {subject.intent}: it is what autodiff makes of that{at}"
    elif outcome.verdict == "right":
        sentence = f"agrees with the derivative to {outcome.resolution:.1e}{at}"
    else:
        sentence = f"undecided{at}: {WHY.get(outcome.reason, outcome.reason)}"
    return Finding(
        "derivative",
        outcome.verdict,
        sentence,
        measured=worst.measured if worst else None,
        claimed=worst.claimed if worst else None,
        resolution=float(outcome.resolution) if np.isfinite(outcome.resolution) else None,
        reason=outcome.reason,
        oracle=oracle,
        point=point.label,
        resized=point.resized,
        inputs=point.inputs,
        cotangents=cotangents,
    )
