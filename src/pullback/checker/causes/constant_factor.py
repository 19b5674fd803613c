"""The gradient is off by a constant factor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.directions import relative
from pullback.checker.equation import equation, noise_of
from pullback.checker.evidence import Evidence
from pullback.checker.steps import Line

SLUG = "constant-factor"
RANK = 50
LEFT = 0.05  # of an error, what may stay when a factor is taken out


def ratio_of(evidence: Evidence, place: int) -> float | None:
    """Fit claim = r · truth for one input, or give None."""
    assert evidence.true is not None
    t = np.concatenate([evidence.part(v, place) for v in evidence.true])
    c = np.concatenate([evidence.part(v, place) for v in evidence.claimed])
    if not np.isfinite(c).all() or not t.any() or not c.any():
        return None
    r = float(t @ c / (t @ t))
    return r if r and evidence.close(c, r * t, 10) else None


def dictionary(evidence: Evidence) -> Iterator[tuple[float, str, str]]:
    """List the factors that people forget: the value, how it is written, where it comes from."""
    for value, written in (
        (math.log(2), "ln 2"),
        (math.log(10), "ln 10"),
        (math.pi, "π"),
        (2 * math.pi, "2π"),
        (math.pi / 180, "π/180"),
        (math.sqrt(2), "√2"),
        (2 / math.sqrt(math.pi), "2/√π"),
        (math.sqrt(math.pi), "√π"),
        (math.sqrt(2 * math.pi), "√(2π)"),
    ):
        yield value, written, ""
    shapes = list(zip([evidence.name(p) for p in range(evidence.count)], evidence.problem.domain.shapes))
    shapes += [("the output", s) for s in evidence.problem.codomain.shapes]
    for name, shape in shapes:
        for axis, d in enumerate(shape):
            if d > 1:
                length = f"the length of axis {axis} of {name}"
                yield float(d), f"{d}", length
                yield math.sqrt(d), f"√{d}", f"from {length}"
                yield d - 1.0, f"{d - 1}", f"{length} less one"
                yield d / (d - 1.0), f"{d}/{d - 1}", f"from {length}"
        size = math.prod(shape)
        yield float(size), f"{size}", f"the size of {name}"


def named(evidence: Evidence, r: float) -> str:
    """Write a factor as a person would."""
    minus = "-" if r < 0 else ""
    # Two small numbers make a factor more often than a short axis does.
    simple = as_fraction(abs(r), 4)
    if simple is not None and simple <= 4:
        return f"{minus}{simple}"
    for value, written, origin in dictionary(evidence):
        for candidate, text in ((value, written), (1 / value, inverse(written))):
            if abs(abs(r) - candidate) <= 1e-4 * candidate and abs(candidate - 1) > 1e-6:
                return f"{minus}{text}" + (f" ({origin})" if origin else "")
    fraction = as_fraction(abs(r), 12)
    return f"{r:.6g}" if fraction is None else f"{minus}{fraction}"


def inverse(written: str) -> str:
    """Write one divided by a factor."""
    if "(" in written:
        return f"1/({written})"
    over, _, under = written.partition("/")
    return f"{under}/{over}" if under else f"1/{written}"


def as_fraction(r: float, largest: int) -> Fraction | None:
    """Give a factor as a fraction with a small denominator, where it is one."""
    fraction = Fraction(r).limit_denominator(largest)
    return fraction if fraction and abs(float(fraction) - r) < 1e-5 * r else None


def projected(evidence: Evidence, place: int) -> float | None:
    """Measure the factor of one input along two directions, where there is no whole truth."""
    problem, rng = evidence.problem, evidence.settings.rng(22)
    own = np.zeros(problem.x.size)
    own[problem.domain.part(place)] = 1.0
    ratios = []
    for v, g in zip(evidence.vs[:2], evidence.claimed[:2]):
        line = Line(problem.evaluate, problem.x, own * relative(rng, problem.x))
        line.seen[0.0] = (problem.x, problem.y)
        noise = noise_of(problem, v, g, rng, [])
        found = equation(problem, line, v, g, noise=noise, target=1e-9)
        if not np.isfinite(found.error) or 1e5 * found.error > abs(found.measured):
            return None
        ratios.append(found.claimed / found.measured)
    return ratios[0] if abs(ratios[0] - ratios[1]) <= 1e-4 * abs(ratios[0]) else None


def search(evidence: Evidence) -> Match | None:
    """Fit one factor per wrong input."""
    if evidence.true is None:
        found = {p: projected(evidence, p) for p in range(evidence.count)}
        off = {p: r for p, r in found.items() if r is None or abs(r - 1) > 1e-4}
        if not off or any(r is None or abs(r + 1) < 1e-4 or abs(r) < 1e-9 for r in off.values()):
            return None
        return said_of(evidence, list(off), [r for r in off.values() if r is not None])
    if not evidence.wrong_inputs:
        return None
    ratios = [ratio_of(evidence, p) for p in evidence.wrong_inputs]
    # A ratio that rounding explains (float32 inside float64) is a matter of precision, not of a factor.
    if any(r is None or abs(r + 1) < 1e-5 or abs(r - 1) < 1e-6 for r in ratios):
        return None
    # What an approximation leaves is near any factor that is near one: a factor leaves nothing.
    if not all(_explains(evidence, p, r) for p, r in zip(evidence.wrong_inputs, ratios) if r is not None):
        return None
    # One number is a multiple of any other: only a second point tells a factor from a coincidence.
    other = evidence.elsewhere()
    if other is not None:
        again = [ratio_of(other, p) for p in evidence.wrong_inputs]
        if not other.wrong_inputs or any(
            a is None or abs(a - r) > min(1e-4 * abs(r), LEFT * abs(r - 1))
            for a, r in zip(again, ratios)
            if r is not None
        ):
            return None
    elif sum(evidence.part(evidence.claimed[0], p).size for p in evidence.wrong_inputs) < 3:
        return None
    return said_of(evidence, evidence.wrong_inputs, [r for r in ratios if r is not None])


def _explains(evidence: Evidence, place: int, r: float) -> bool:
    """Tell whether a factor leaves little of the error."""
    assert evidence.true is not None
    t = np.concatenate([evidence.part(v, place) for v in evidence.true])
    c = np.concatenate([evidence.part(v, place) for v in evidence.claimed])
    return bool(np.linalg.norm(c - r * t) <= LEFT * np.linalg.norm(c - t))


def said_of(evidence: Evidence, places: list[int], ratios: list[float]) -> Match:
    """Put the factors into words."""
    names = [evidence.name(p) for p in places]
    said = [named(evidence, r) for r in ratios]
    how = said[0] if len(set(said)) == 1 else ", ".join(said)
    return Match(
        SLUG,
        f"the gradient of {listed(names)} is {how} times the derivative, everywhere",
        f"divide the gradient of {listed(names)} by {how}",
        listed(names),
    )
