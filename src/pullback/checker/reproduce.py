"""Code to paste that shows a failure: it prints the gradient, then one entry of it beside its difference.

The code is tried before it is printed: the checker evaluates the same arrays in the same way, and keeps the
first that shows the failure with few numbers to read. The numbers of the report are those that it prints.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pullback.checker.finding import Finding
from pullback.checker.oracle import body_gradient
from pullback.checker.problem import Problem
from pullback.checker.promises import promises
from pullback.checker.second import second_subject
from pullback.checker.settings import Settings
from pullback.checker.space import Space
from pullback.checker.written import Written, drawn, literal, made, rounded
from pullback.dtypes import is_complex, is_guest
from pullback.view.subject import Array, Arrays, Subject
from pullback.view.words import Shown

ENTRIES = 16  # that are moved in search of one that shows the failure
PROMISED = ("structure", "sorted", "order")  # that arrays made for reading keep
SMALL = 1e-2  # of the largest number among entries
NUMBERS = 12  # that code to read may have
LONGEST = 4096  # entries of arrays that are written out
SHOWING = ("derivative", "second_order", "linearity")


@dataclass(frozen=True)
class Entry:
    """Hold one entry that shows the failure: the input, its index, the step, and the two numbers."""

    place: int
    index: tuple[int, ...]
    imaginary: bool
    step: float
    digits: int
    measured: float
    claimed: float


def reproduced(here: Subject, small: Subject, finding: Finding, settings: Settings) -> Finding:
    """Write the code of a finding, and give the finding the numbers that the code prints."""
    best: tuple[str, Entry] | None = None
    smallest = ""
    if finding.probe in SHOWING and not any(is_guest(x.dtype) for x in here.inputs):
        for inputs, cotangents in candidates(here, small, finding):
            entry = shown_entry(here, inputs, cotangents, finding, settings)
            if entry is None:
                continue
            text = code(here, inputs, cotangents, entry, seed=settings.seed, second=_second(finding))
            if best is None or numbers(text) < numbers(best[0]):
                best, smallest = (text, entry), named(here, inputs)
            if numbers(text) <= NUMBERS:
                break
    if best is not None:
        text, entry = best
        return replace(
            finding, reproducer=text, measured=entry.measured, claimed=entry.claimed, smallest=smallest
        )
    given = finding.cotangents if small is here else None
    if sum(a.size for a in (*small.inputs, *(given or ()))) > LONGEST:
        return finding  # nobody would paste that
    texts = None if given is None else [literal(c) for c in given]
    written = [literal(x) for x in small.inputs]
    text = code(small, written, texts, None, seed=settings.seed)
    if finding.measured is not None:
        text += f"\n# measured {finding.measured:.9g}, claimed {finding.claimed:.9g} along a direction"
    return replace(finding, reproducer=text, smallest=named(small, written))


def named(subject: Subject, inputs: list[Written]) -> str:
    """Write the inputs, a line each."""
    return "\n".join(f"{name} = {w.text}" for name, w in zip(subject.names, inputs))


def candidates(
    here: Subject, small: Subject, finding: Finding
) -> Iterator[tuple[list[Written], list[Written] | None]]:
    """Give inputs and cotangents to try, those that are read most easily first; None stands for ones."""
    points = []
    for subject in (here, small) if small is not here else (here,):
        size = sum(x.size for x in subject.inputs)
        like = [[literal(x) if x.size < 4 else _like(x) for x in subject.inputs]]
        if _lacks(subject.inputs, tuple(w.array for w in like[0])):
            like = []
        if size > LONGEST:
            points += like
            continue
        exact = [[rounded(x) for x in subject.inputs], [literal(x) for x in subject.inputs]]
        points += [*exact, *like] if size <= NUMBERS else [*like, *exact]
    for inputs in points:
        yield inputs, None
        try:
            outputs = here.forward(tuple(w.array for w in inputs))
        except Exception:  # outside the domain
            continue
        yield inputs, [drawn(y) for y in outputs]
    if finding.cotangents is not None and sum(a.size for a in (*here.inputs, *finding.cotangents)) <= LONGEST:
        yield [literal(x) for x in here.inputs], [literal(c) for c in finding.cotangents]


def _like(x: Array) -> Written:
    """Give another array of the kind; a short one as it is, where others lack what it promises."""
    other = made(x)
    return literal(x) if x.size <= NUMBERS and _lacks((x,), (other.array,)) else other


def _lacks(given: Arrays, others: Arrays) -> bool:
    """Tell whether arrays lack a structure or an order that others have: a failure there says nothing."""
    names = [""] * len(given)
    return any(kind in PROMISED and not kept(others) for kind, _, kept in promises(given, names))


def _second(finding: Finding) -> bool:
    return finding.probe == "second_order"


def shown_entry(
    subject: Subject,
    inputs: list[Written],
    cotangents: list[Written] | None,
    finding: Finding,
    settings: Settings,
) -> Entry | None:
    """Find an entry whose difference is not what is claimed, or give None."""
    arrays = tuple(w.array for w in inputs)
    try:
        outputs = subject.oracle_forward(arrays)
        v = tuple(np.ones_like(y) for y in outputs)
        if cotangents is not None:
            v = tuple(w.array for w in cotangents)
            if [c.shape for c in v] != [y.shape for y in outputs]:
                return None
        here = subject.at(arrays)
        if _second(finding):
            here = second_subject(here, settings.rng(8), v)
            v = tuple(np.ones_like(y) for y in here.forward(here.inputs))
        problem = Problem.of(here)
        packed = problem.codomain.pack(v)
        claim = problem.gradient(packed)
    except Exception:  # outside the domain, or of another shape
        return None
    # A second order does not move an input for which the first gives None.
    count = Space.of([x for x, d in zip(arrays, here.differentiable) if d]).size
    plain = body_gradient(here, problem, packed)
    order = np.arange(count)
    if plain is not None and np.isfinite(plain).all():
        order = np.argsort(-np.abs(np.nan_to_num(claim, nan=1e300) - plain)[:count], kind="stable")
    elif count > ENTRIES:
        order = settings.rng(24).permutation(count)
    found = [_entry(problem, packed, claim, int(i)) for i in order[:ENTRIES]]
    telling = [e for e in found if e is not None]
    # An entry that is small beside the others tells of them, and not of the failure.
    floor = SMALL * max((abs(e.measured) for e in telling), default=0.0) + 1e-300
    return max(telling, key=lambda e: _gap(e) / max(abs(e.measured), abs(e.claimed), floor), default=None)


def _gap(entry: Entry) -> float:
    return abs(entry.measured - entry.claimed) if math.isfinite(entry.claimed) else math.inf


def _entry(problem: Problem, v: Array, claim: Array, i: int) -> Entry | None:
    if problem.still()[i]:
        return None
    size = max(abs(problem.x[i]), 1e-2)
    h = 10.0 ** round(math.log10(problem.unit ** (1 / 3) * size))
    e = np.zeros_like(problem.x)
    e[i] = h
    (_, ahead), (_, behind) = problem.evaluate(problem.x + e), problem.evaluate(problem.x - e)
    with np.errstate(invalid="ignore", over="ignore"):
        measured, claimed = float(v @ (ahead - behind)) / (2 * h), float(claim[i])
    if not math.isfinite(measured):
        return None
    noise = 8 * problem.unit * float(np.abs(v) @ np.abs(problem.y)) / h
    scale = max(abs(measured), abs(claimed) if math.isfinite(claimed) else 0.0)
    gap = abs(measured - claimed)
    if math.isfinite(claimed) and gap <= max(noise, 20 * problem.unit ** (2 / 3) * scale):
        return None
    digits = 6 - math.floor(math.log10(scale or 1.0))
    if math.isfinite(gap):
        digits = max(digits, 2 - math.floor(math.log10(gap)))
    k, index = problem.domain.where(i)
    complex_entry = is_complex(problem.domain.dtypes[k])
    odd = bool(complex_entry and (i - problem.domain.part(k).start) % 2)
    return Entry(
        problem.chosen[k], index, odd, h, digits, round(measured, digits) + 0.0, round(claimed, digits) + 0.0
    )


def numbers(text: str) -> int:
    """Count the numbers that somebody who reads the code has to read."""
    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, ValueError):  # a rule may have a name that nobody can write
        return 0
    return sum(isinstance(node, ast.Constant) and type(node.value) in (int, float, complex) for node in nodes)


def code(
    subject: Subject,
    inputs: list[Written],
    cotangents: list[Written] | None,
    entry: Entry | None,
    *,
    seed: int,
    second: bool = False,
) -> str:
    """Write the lines: imports, inputs, the gradient, and the entry that shows the failure."""
    words = subject.words
    names = [f"x{k}" for k in range(len(inputs))]
    dtypes = frozenset(w.array.dtype.name for w in inputs)
    lines = ["import numpy as np", *words.head(dtypes)]
    lines += subject.imports()
    lines.append("")
    for name, w, label in zip(names, inputs, subject.names):
        lines.append(f"{name} = {words.tensor.format(values=w.text, dtype=w.array.dtype.name)}  # {label}")
    count = len(names) - len(subject.parameters)
    upstream = None
    if cotangents is not None:
        upstream = [words.tensor.format(values=w.text, dtype=w.array.dtype.name) for w in cotangents]
    shown = Shown(
        call=subject.written(names[:count]),
        names=names,
        inputs=names[:count],
        moving=[n for n, d in zip(names, subject.differentiable) if d],
        parameters=list(zip(subject.parameters, names[count:])),
        cotangents=upstream,
        dtypes=dtypes,
    )
    lines += words.example(shown, second=second)
    if entry is not None:
        lines += compared(shown, entry, inputs, words.tensor, words.numpy, second=second)
    lines.append(f"# seed {seed}")
    return "\n".join(lines)


def compared(
    shown: Shown, entry: Entry, inputs: list[Written], tensor: str, numpy: str, *, second: bool
) -> list[str]:
    """Write the difference of one entry beside what is claimed of it."""
    name = shown.names[entry.place]
    dtype = inputs[entry.place].array.dtype.name
    arguments = ", ".join(shown.names)
    moved = [re.sub(rf"\b{name}\b", f"{name} {sign} step", arguments) for sign in "+-"]
    what = "gradient" if second else "outputs"
    ends = f"zip({what}({moved[0]}), {what}({moved[1]}))"
    a, b = numpy.format(t="a"), numpy.format(t="b")
    change = f"{a} - {b}"
    loop, each = f"a, b in {ends}", f"np.sum({change})"
    if not second and shown.cotangents is not None:
        loop, each = f"c, (a, b) in zip(v, {ends})", f"np.vdot({numpy.format(t='c')}, {change})"
    position = shown.moving.index(name)
    at = ", ".join(map(str, entry.index))
    claimed = f"{numpy.format(t=f'g[{position}]')}[at]"
    part = "imag" if entry.imaginary else "real"
    where = f"{name}[{at}]" if entry.index else name
    return [
        f"h, at = {entry.step!r}, {at if len(entry.index) == 1 else f'({at})'}",
        f"step = np.zeros({name}.shape, {dtype!r})",
        "step[at] = h" + (" * 1j" if entry.imaginary else ""),
        f"step = {tensor.format(values='step', dtype=dtype)}",
        f"measured = sum({each}.real for {loop}) / (h + h)",
        f"claimed = {claimed}.{part}",
        f'print(f"{where}: measured {{measured:.{_shown(entry, entry.measured)}g}}, '
        f'claimed {{claimed:.{_shown(entry, entry.claimed)}g}}")',
    ]


def _shown(entry: Entry, value: float) -> int:
    """Give the significant digits that show a value to the digits of its entry."""
    if not math.isfinite(value) or value == 0:
        return 6
    return max(1, entry.digits + 1 + math.floor(math.log10(abs(value))))
