"""Measure what a page shows of a rule: only where somebody asked for it, and within the rule's budget.

The pictures are of the point that failed, or of the given one, and of the order that failed. They are drawn
from the evidence that the search for a cause has, too. One that cannot be had is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pullback.checker.directions import floor_of, signed
from pullback.checker.evidence import COLUMNS, Evidence, differences
from pullback.checker.finding import Finding
from pullback.checker.oracle import AUTODIFF, FLOAT64, SHIPPED, body_gradient
from pullback.checker.picture import MOST, Heat, Scatter, Slice, Stability, number, numbers, rounded
from pullback.checker.problem import Problem
from pullback.checker.second import second_subject
from pullback.checker.settings import Settings
from pullback.dtypes import is_complex
from pullback.view.subject import Array, Subject

STEPS = 41  # of a slice
ROWS = 16  # of a heat map, at most
COLUMNS_SHOWN = 64
DECADES = 20  # on either side of one
NUMERIC = ("derivative", "second_order", "linearity")


def pictures(
    subject: Subject, shipped: Subject, findings: list[Finding], settings: Settings
) -> Iterator[Mapping[str, Any]]:
    """Give the pictures of a check, one by one: the budget may end any of them."""
    if not any(subject.differentiable):
        return
    failure = next((f for f in findings if f.verdict == "wrong" and f.probe in NUMERIC), None)
    here = subject.at(subject.inputs if failure is None or failure.inputs is None else failure.inputs)
    second = failure is not None and failure.probe == "second_order"
    try:
        lifted = second_subject(here, settings.rng(8)) if second else here
        seen = Seen(Evidence(lifted, settings, 2 if second else 1))
    except Exception:  # a gradient of another shape, or none at all: there is nothing to draw
        return
    draws: list[Callable[[], Mapping[str, Any] | None]] = [seen.scatter, seen.heat, seen.slice]
    if not second:
        draws.append(lambda: stability(shipped, settings))
    for draw in draws:
        try:
            found = draw()
            json.dumps(found, allow_nan=False)  # whatever numbers a function gives, the report can be written
        except Exception:  # a user's function may fail in any way where nobody ran it before
            continue
        if found is not None:
            yield found


class Seen:
    """Hold the claimed and the measured gradient of one cotangent at one point."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.problem = evidence, evidence.problem
        self.v, self.claim = evidence.vs[0], evidence.claimed[0]
        size = self.problem.x.size
        self.whole = evidence.true is not None
        self.kept = np.arange(size)
        if evidence.true is not None:
            self.truth = evidence.true[0]
        else:
            # Too many to measure each: some of them, drawn.
            self.kept = np.sort(evidence.settings.rng(25).permutation(size)[:COLUMNS])
            self.truth = np.full(size, np.nan)
            self.truth[self.kept] = self.v @ differences(self.problem, self.kept.tolist())
        self.kept = self.kept[~self.problem.still()[self.kept]]
        self.kept = self.kept[np.isfinite(self.truth[self.kept])]
        truth, claim = self.truth[self.kept], self.claim[self.kept]
        finite = np.isfinite(claim)
        self.error, self.apart = np.zeros(size), np.zeros(size, bool)
        self.error[self.kept] = np.where(finite, np.abs(np.where(finite, claim, 0) - truth), np.inf)
        self.apart[self.kept] = True
        self.apart[self.kept[finite]] = evidence.differs(truth[finite], claim[finite])
        self.order = evidence.order

    @property
    def oracle(self) -> str:
        """Name who measured."""
        return AUTODIFF if self.evidence.autodiff else FLOAT64 if self.problem.unit < 1e-12 else SHIPPED

    def name(self, i: int) -> str:
        """Name an entry as code does."""
        place, index = self.problem.domain.where(i)
        name = self.evidence.name(place)
        at = f"[{', '.join(map(str, index))}]" if index else ""
        if not is_complex(self.problem.domain.dtypes[place]):
            return name + at
        odd = (i - self.problem.domain.part(place).start) % 2
        return f"{name}{at}.{'imag' if odd else 'real'}"

    def scatter(self) -> Scatter | None:
        """Set claims beside the truth; of many entries, the worst and some of the others."""
        if not self.kept.size:
            return None
        ranked = self.kept[np.argsort(-self.error[self.kept], kind="stable")]
        if ranked.size > MOST:
            some = ranked[np.linspace(0, ranked.size - 1, MOST // 2).astype(int)]
            ranked = np.concatenate([ranked[: MOST // 2], some])
        chosen = np.unique(ranked)
        meant = self.evidence.subject.intent.kind == "differs"
        return Scatter(
            kind="scatter",
            order=self.order,
            oracle=self.oracle,
            total=int(self.problem.x.size),
            entries=[self.name(int(i)) for i in chosen],
            claimed=numbers(self.claim[chosen]),
            measured=numbers(self.truth[chosen]),
            apart=[] if meant else np.flatnonzero(self.apart[chosen]).tolist(),
        )

    def heat(self) -> Heat | None:
        """Lay the error over the input that is wrong, or the largest one."""
        if not self.whole:
            return None
        evidence = self.evidence
        places = evidence.wrong_inputs or range(evidence.count)
        place = max(places, key=lambda p: evidence.array(p).size)
        truth, claim = (np.asarray(evidence.shaped(g, place)) for g in (self.truth, self.claim))
        if truth.size < 2:
            return None
        with np.errstate(invalid="ignore"):
            sizes = np.abs(np.stack([truth, claim]))
            largest = float(np.max(sizes, initial=0.0, where=np.isfinite(sizes))) or 1.0
            error = np.nan_to_num(np.abs(truth - claim) / largest, nan=np.inf)
        shape = error.shape
        table = error.reshape(-1, shape[-1])
        rows = _groups(table.shape[0], ROWS)
        columns = _groups(table.shape[1], min(COLUMNS_SHOWN, MOST // len(rows)))
        cells = [[table[np.ix_(r, c)].max() for c in columns] for r in rows]
        return Heat(
            kind="heat",
            order=self.order,
            input=evidence.name(place),
            shape=list(map(int, shape)),
            rows=[_span(r, shape[:-1]) for r in rows],
            columns=[_span(c, shape[-1:]) for c in columns],
            cells=numbers(np.array(cells)),
            noise=min(10 * evidence.tolerance, 1.0),
            folded=max(len(rows[0]), len(columns[0])) > 1,
        )

    def slice(self) -> Slice | None:
        """Follow the function along the worst entry; the steepest one where none is wrong."""
        if not self.kept.size:
            return None
        # A right rule has rounding only: no entry of it is the worst.
        size = np.where(self.apart, self.error, 0.0) if self.apart.any() else np.abs(self.truth)
        i = int(self.kept[np.argmax(size[self.kept])])
        problem = self.problem
        at = float(problem.x[i])
        reach = 0.75 * max(abs(at), floor_of(problem.x))
        low = at - reach if problem.low is None else max(at - reach, float(problem.low[i]))
        high = at + reach if problem.high is None else min(at + reach, float(problem.high[i]))
        steps, values = [], []
        for step in np.linspace(low, high, STEPS):
            moved = problem.x.copy()
            moved[i] = step
            reached, y = problem.evaluate(moved)
            with np.errstate(invalid="ignore", over="ignore"):
                values.append(float(self.v @ (y - problem.y)))
            steps.append(float(reached[i]))
        return Slice(
            kind="slice",
            order=self.order,
            entry=self.name(i),
            at=at,
            steps=rounded(np.array(steps)),
            values=numbers(np.array(values)),
            claimed=number(float(self.claim[i])),
            measured=number(float(self.truth[i])),
        )


def _groups(count: int, most: int) -> list[Array]:
    return [part for part in np.array_split(np.arange(count), min(count, most)) if part.size]


def _span(part: Array, shape: tuple[int, ...]) -> str:
    """Name the indices from the first to the last of a group."""
    ends = [np.unravel_index(int(i), shape) if shape else () for i in (part[0], part[-1])]
    first, last = (", ".join(str(int(i)) for i in index) for index in ends)
    return first if first == last else f"{first} … {last}"


def stability(subject: Subject, settings: Settings) -> Stability | None:
    """Follow the derivative of an elementwise rule from 10⁻²⁰ to 10²⁰ and their negatives."""
    moving = [k for k, d in enumerate(subject.differentiable) if d]
    body = subject.body_pullback
    if len(moving) != 1 or body is None or not subject.is_rule or subject.intent.kind == "differs":
        return None
    (k,) = moving
    x = subject.inputs[k]
    if is_complex(x.dtype) or not elementwise(subject, settings):
        return None
    decades = 10.0 ** np.arange(-DECADES, DECADES + 1)
    with np.errstate(over="ignore"):
        values = np.concatenate([-decades[::-1], decades]).astype(x.dtype)
    wide = values.astype(np.float64)
    low, high = (-np.inf, np.inf) if subject.limits is None else subject.limits[k]
    values = values[np.isfinite(wide) & (wide != 0) & (wide >= low) & (wide <= high)]
    claimed: list[Array] = []
    plain: list[Array] = []
    for start in range(0, values.size, x.size):
        part = values[start : start + x.size]
        filled = x.reshape(-1).copy()
        filled[: part.size] = part
        inputs = tuple(filled.reshape(x.shape) if i == k else a for i, a in enumerate(subject.inputs))
        for pullback, found in ((subject.pullback, claimed), (body, plain)):
            try:
                ones = tuple(np.ones_like(y) for y in subject.forward(inputs))
                g = pullback(inputs, ones)[k]
            except Exception:  # outside the domain
                g = None
            slopes = np.full(x.shape, np.nan) if g is None else g.astype(np.float64)
            found.append(slopes.reshape(-1)[: part.size])
    if not values.size:
        return None
    return Stability(
        kind="stability",
        order=1,
        input=subject.names[k],
        dtype=x.dtype.name,
        at=rounded(values.astype(np.float64)),
        claimed=numbers(np.concatenate(claimed)),
        autodiff=numbers(np.concatenate(plain)),
    )


def elementwise(subject: Subject, settings: Settings) -> bool:
    """Tell whether each output depends on the entry at its own place alone, by plain autodiff of the body."""
    problem = Problem.of(subject)
    if problem.codomain.shapes != problem.domain.shapes or not problem.x.size:
        return False
    rng = settings.rng(26)
    v, w = signed(rng, problem.y.size), signed(rng, problem.y.size)
    a, b = body_gradient(subject, problem, v), body_gradient(subject, problem, w)
    if a is None or b is None:
        return False
    slack = 64 * problem.unit
    return bool(np.allclose(a * w, b * v, rtol=slack, atol=slack, equal_nan=True))
