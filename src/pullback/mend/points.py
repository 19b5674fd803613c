"""The points at which candidates are tried: small, different in kind, and of more than one shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pullback import tree
from pullback.checker.finding import Report
from pullback.checker.points import finite, own_points, reshaped
from pullback.checker.promises import WEAK, broken
from pullback.checker.settings import Settings
from pullback.checker.shrink import candidates
from pullback.checker.within import within
from pullback.dtypes import is_real_or_complex
from pullback.hosts.base import Host
from pullback.mend.moment import Moment, moment
from pullback.mend.source import RefusedError
from pullback.view import subject_of
from pullback.view.subject import Arrays, Subject

SMALL = 160  # numbers in all inputs together
LARGE = 4096  # … of which a candidate may still make an array of all pairs, and not fill the memory
ROUNDS = 24
OWN = ("both signs", "between the given values", "in (0, 1)", "positive", "wide")


def moments(
    subject: Subject, report: Report, settings: Settings, other: Subject | None = None
) -> list[Moment]:
    """Give the moments, those that show the failure first; `other` is the same call with other numbers."""
    found: list[Moment] = []
    for n, (label, inputs) in enumerate(_chosen(subject, report, settings)):
        if not _kept(subject, inputs):
            continue
        if _ill_fits(subject, inputs, found):
            continue
        made = moment(subject, label, inputs, settings, n)
        if made is not None:
            found.append(made)
        if made is not None and n == 0:  # the same point with another cotangent
            again = moment(subject, label, inputs, settings, 100)
            found += [] if again is None else [again]
        if len(found) >= 7:
            break
    if other is not None:
        made = moment(other, "other numbers among the arguments", shrunk(other, other.inputs), settings, 101)
        found += [] if made is None else [made]
    return found


def resized(subject: Subject, settings: Settings) -> list[Moment]:
    """Give moments of other shapes, whether the rule as it stands fits them or not."""
    given = shrunk(subject, subject.inputs)
    points = reshaped(subject.at(given), settings.rng(43))
    found = (
        moment(subject, label, inputs, settings, 300 + n)
        for n, (label, inputs) in enumerate(points)
        if _kept(subject, inputs)
    )
    return [made for made in found if made is not None]


def finest(given: Subject) -> Subject:
    """Give a subject in float64, unless its gradient is bound to the dtype that it was given.

    `tf.where(x > 0, 1.0, -1.0)` makes float32, whatever `x` is.
    """
    finer = given.astype("float64", False) if given.astype is not None else None
    if finer is None or (fits(given, given.inputs) and not fits(finer, finer.inputs)):
        return within(given)
    return within(replace(finer, domain=given.domain))


def otherwise(
    subject: Subject, host: Host, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Subject | None:
    """Make a subject of the same call with other numbers, where it has any and works with them."""
    call = renumbered(args, kwargs)
    if call is None:
        return None
    try:
        return finest(replace(subject_of(host, function, *call), domain=subject.domain))
    except Exception:  # other numbers may be none that it takes
        return None


def renumbered(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Give a call with other floats in the places of those that are no inputs; None if it has none.

    A constant in an edit may be one of them by accident.
    """
    leaves, structure = tree.flatten([list(args), kwargs])
    moved = [leaf * 1.375 if type(leaf) is float else leaf for leaf in leaves]
    if all(a is b for a, b in zip(leaves, moved)) or all(isinstance(x, (int, float)) for x in leaves):
        return None
    positional, named = tree.unflatten(structure, moved)
    return tuple(positional), named


def shrunk(subject: Subject, inputs: Arrays) -> Arrays:
    """Give smaller inputs at which the function exists, if these are large; refuse what stays so."""
    for _ in range(ROUNDS):
        if sum(x.size for x in inputs) <= SMALL:
            break
        smaller = next(
            (c for c in candidates(inputs) if sum(x.size for x in c) < sum(x.size for x in inputs)
             and finite(subject, c) is not None), None,
        )  # fmt: skip
        if smaller is None:
            break
        inputs = smaller
    if sum(x.size for x in inputs) > LARGE:
        raise RefusedError("its inputs are large, and it does not run at smaller ones")
    return inputs


def _chosen(subject: Subject, report: Report, settings: Settings) -> Iterator[tuple[str, Arrays]]:
    given = shrunk(subject, subject.inputs)
    failing = [f for f in report.failures if f.inputs is not None and f.probe == "derivative"]
    for finding in failing[:1]:
        inputs = finding.inputs or ()
        if len(inputs) == len(given) and finding.point != "given":
            yield finding.point, shrunk(subject, tuple(x.astype(g.dtype) for x, g in zip(inputs, given)))
    yield "given", given
    rng = settings.rng(41)
    moved = tuple(
        (x * rng.uniform(0.7, 1.3, x.shape)).astype(x.dtype) if is_real_or_complex(x.dtype) else x
        for x in given
    )
    yield "beside the given one", moved
    drawn = {p.label: p for p in own_points(subject.at(given), settings.rng(42))}
    resized = [p for p in drawn.values() if p.resized]
    for point in resized[:2]:
        yield point.label, point.inputs
    for label in OWN:
        if label in drawn:
            yield label, drawn[label].inputs


def _kept(subject: Subject, inputs: Arrays) -> bool:
    """Tell whether a point keeps what the given arguments promise, as far as a right rule may rest on it."""
    promised = broken(subject.inputs, inputs, subject.names, zero=subject.is_rule)
    return promised is None or (promised[0] in WEAK and promised[0] != "mask")


def _ill_fits(subject: Subject, inputs: Arrays, found: list[Moment]) -> bool:
    """Tell whether the rule as it stands fits the given shapes and not these: no other edit would pass."""
    given = next((m.inputs for m in found if m.label == "given"), inputs)
    resized = any(a.shape != b.shape for a, b in zip(given, inputs))
    return resized and fits(subject, given) and not fits(subject, inputs)


def fits(subject: Subject, inputs: Arrays) -> bool:
    """Tell whether a rule runs at a point, and gives each input a gradient of its shape."""
    try:
        parts = subject.pullback(inputs, subject.forward(inputs))
    except Exception:  # a gradient may fail in any way it likes
        return False
    return all(part is None or part.shape == x.shape for part, x in zip(parts, inputs))


def described(found: Moment) -> str:
    """Say where a point is, in words."""
    shapes = ", ".join(f"{x.dtype.name}{list(x.shape)}" for x in found.inputs)
    return f"{found.label}: {shapes}"
