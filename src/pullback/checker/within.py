"""Keeping a check inside the domain of a function: nothing outside is ever asked of it.

The function itself is guarded, so no probe needs to know; where a difference would step over an edge, it is
taken on one side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.checker.problem import Problem
from pullback.checker.steps import Line, ladder_top
from pullback.domain import EXPECTED, Domain, DomainError, Limits, inside
from pullback.errors import OptionError
from pullback.view.subject import Array, Arrays, Subject

ROUNDING = 2.0**-22  # of a bound: the arguments may have been rounded to single precision
SHRINK = 16  # how much shorter a step on both sides may be before one side is better


class OutsideError(Exception):
    """A point outside the domain: it is passed by, as any that a function refuses."""


def placed(subject: Subject, domain: Any) -> Subject:
    """Say where a function means something, if that is said here and not with the rule."""
    if domain is None:
        return subject
    try:
        return replace(subject, domain=Domain.of(domain))
    except DomainError as problem:
        raise OptionError.about(
            subject.name, found=str(problem), expected=EXPECTED, fix="domain=(0.0, 1.0)"
        ) from None


def within(subject: Subject) -> Subject:
    """Guard a subject by its domain; arguments outside are refused."""
    domain = subject.domain
    if domain is None or subject.limits is not None:
        return subject
    try:
        limits = _widened(domain.limits(subject.names, subject.inputs), subject.inputs)
    except DomainError as problem:
        raise OptionError.about(
            subject.name, found=str(problem), expected=EXPECTED, fix="domain={'x': (0.0, 1.0)}"
        ) from None
    if not inside(limits, subject.inputs) or not domain.holds(subject.names, subject.inputs):
        raise OptionError.about(
            subject.name,
            found="the given arguments are outside the domain",
            expected=str(domain),
            why="nothing is asked of the function there",
            fix="give arguments inside it, or another domain=",
        )

    def is_inside(inputs: Arrays) -> bool:
        try:
            return inside(limits, inputs) and domain.holds(subject.names, inputs)
        except Exception:  # the predicate may refuse a point in any way it likes
            return False

    def guarded(function: Callable[..., Any] | None) -> Any:
        if function is None:
            return None

        def run(inputs: Arrays, *rest: Any) -> Any:
            if not is_inside(inputs):
                raise OutsideError
            return function(inputs, *rest)

        return run

    names = ("forward", "pullback", "target", "body_forward", "body_pullback", "direct_pullback", "second")
    return replace(
        subject,
        limits=limits,
        inside=is_inside,
        **{name: guarded(getattr(subject, name)) for name in names},
    )


def _widened(limits: Limits, inputs: Arrays) -> Limits:
    """Let bounds take in the given values that rounding has put a little outside."""
    found = []
    for (low, high), x in zip(limits, inputs):
        if x.size and x.dtype.kind in "fV":
            least, most = float(x.min()), float(x.max())
            low = least if low - ROUNDING * abs(low) <= least < low else low
            high = most if high < most <= high + ROUNDING * abs(high) else high
        found.append((low, high))
    return tuple(found)


def line(problem: Problem, u: Array) -> Line:
    """Give the line along a direction, turned and shortened so that it stays inside the domain."""
    known = {0.0: (problem.x, problem.y)}
    if problem.low is None or problem.high is None:
        return Line(problem.evaluate, problem.x, u, known)
    top = ladder_top(problem.unit)
    size = np.abs(u)
    above, below = problem.high - problem.x, problem.x - problem.low
    nearest = np.minimum(above, below)
    both = np.minimum(size, nearest / top)
    if (SHRINK * both >= size).all():
        found = Line(problem.evaluate, problem.x, np.sign(u) * both, known)
    else:
        # Every entry goes to where it has room.
        tight = nearest < 2 * top * size
        sign = np.where(tight, np.where(above >= below, 1.0, -1.0), np.sign(u)) * (u != 0)
        room = np.where(sign > 0, above, below)
        found = Line(
            problem.evaluate, problem.x, sign * np.minimum(size, room / (2 * top)), known, onesided=True
        )
    return _allowed(problem, found, top)


def _allowed(problem: Problem, found: Line, top: float) -> Line:
    """Shorten or turn a line until a predicate lets it pass, if that is possible."""
    if problem.inside is None:
        return found

    def passes(reach: float, u: Array) -> bool:
        return problem.inside is None or problem.inside(problem.with_x(problem.x + reach * u))

    for shorter in (1.0, 1 / 8, 1 / 64):
        u = found.u * shorter
        if not found.onesided and passes(top, u) and passes(-top, u):
            return Line(found.evaluate, found.x, u, found.seen)
        for turned in (u,) if found.onesided else (u, -u):
            if passes(top, turned) and passes(2 * top, turned):
                return Line(found.evaluate, found.x, turned, found.seen, onesided=True)
    return found
