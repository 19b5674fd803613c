"""Is the pullback the derivative it claims to be: at the given point, and at points of the checker's own?"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import chain

import numpy as np

from pullback.checker.equation import Outcome
from pullback.checker.examine import examine, reads_one_triangle
from pullback.checker.finding import Finding
from pullback.checker.oracle import AUTODIFF, FLOAT64, SHIPPED
from pullback.checker.points import Point, own_points
from pullback.checker.probe import probe
from pullback.checker.problem import Problem, ShapeMismatchError
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.checker.switches import switch_points
from pullback.view.subject import Subject

PATIENCE = 20.0  # seconds for the checker's own points; the given one takes what it takes
WHY = {
    "noise": "rounding hides the derivative",
    "rough": "the function varies on the scale of rounding",
    "kink": "the derivative is a choice here",
    "domain": "the function does not exist on one side",
    "nonfinite": "the function or its gradient is not finite here",
    "empty": "there are no entries",
    "no gradient": "no gradient flows to any input",
}


@probe(rank=30)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Test the given point, then own points until one fails."""
    if subject.intent.kind == "differs":
        return [
            Finding(
                "derivative", "note", f"the gradient is {subject.intent}: not compared with the derivative"
            )
        ]
    if not any(subject.differentiable):
        return [
            Finding(
                "derivative",
                "undecided",
                "no input is floating or complex: there is nothing to differentiate",
                reason="no gradient",
            )
        ]
    if not subject.forward(subject.inputs):
        said = "the function returned no floating or complex tensor: no gradient can flow through it"
        return [Finding("derivative", "undecided", said, reason="no gradient")]
    try:
        outcome = examine(subject, Point("given", subject.inputs), settings.rng(4), settings, own=False)
    except ShapeMismatchError:
        return []  # the contract probe says so
    except Exception as error:  # a pullback that raises: the contract probe says so too
        return [
            Finding("derivative", "undecided", f"no gradient: {type(error).__name__}", reason="no gradient")
        ]
    first = finding_of(subject, outcome, Point("given", subject.inputs))
    if outcome.verdict == "wrong" or not settings.own_points:
        return [first]
    findings = [first]
    tested = 0
    # A factorisation that reads one triangle has no gradient to speak of away from symmetric matrices.
    symmetric_only = reads_one_triangle(Problem.of(subject))
    start, stopped = time.monotonic(), ""
    drawn = own_points(subject, settings.rng(5))
    for i, point in enumerate(chain(drawn, switch_points(subject, settings.rng(9)))):
        if time.monotonic() - start > PATIENCE:
            stopped = f"; it is slow, and no more were tried after {PATIENCE:g} s"
            break
        if symmetric_only and not reads_one_triangle(Problem.of(subject.at(point.inputs))):
            continue
        try:
            found = examine(subject, point, settings.rng(6, i), settings, own=True)
        except ShapeMismatchError:
            continue
        except Exception:  # a pullback that raises at a point nobody asked for
            continue
        tested += found.verdict == "right"
        if found.reason == "nonfinite" and found.worst is not None and len(findings) < 2:
            findings.append(
                Finding(
                    "derivative",
                    "note",
                    f"the gradient is not finite at a point of the checker's own ({point.label}), "
                    "where the slope is",
                    inputs=point.inputs,
                )
            )
        if found.verdict == "wrong" and subject.is_builtin:
            sentence = f"the host's own gradient is wrong at a point of the checker's own ({point.label})"
            return [
                *findings,
                replace(finding_of(subject, found, point), verdict="note", sentence=sentence),
            ]
        if found.verdict == "wrong":
            return [*findings, finding_of(subject, found, point)]
    findings.append(
        Finding(
            "derivative", "note", f"also right at {tested} points of the checker's own{stopped}", point="own"
        )
    )
    return findings


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
        sentence = f"the gradient is not the derivative{at}"
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
