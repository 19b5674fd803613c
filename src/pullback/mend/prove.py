"""Proof: the edited text, compiled and run in a namespace of its own, is what the checker finds right."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pullback.checker.examine import examine, excuse
from pullback.checker.finding import Report
from pullback.checker.inquiry import check_subject
from pullback.checker.numeric import derivative_test
from pullback.checker.points import Point, finite, own_points
from pullback.checker.problem import Problem
from pullback.checker.second import second_subject
from pullback.checker.settings import Settings
from pullback.checker.within import within
from pullback.hosts.base import Host
from pullback.mend.bench import Tried
from pullback.mend.diff import edited
from pullback.mend.patch import Patch, Span
from pullback.mend.points import LARGE, fits, shrunk
from pullback.mend.region import Region
from pullback.mend.remade import Remade
from pullback.mend.saved import Saved
from pullback.mend.tree import children, exchanged, spans
from pullback.view import subject_of
from pullback.view.subject import Arrays, Subject


def _alike(a: Arrays, b: Arrays) -> bool:
    return len(a) == len(b) and all(np.allclose(x, y, equal_nan=True) for x, y in zip(a, b))


@dataclass(frozen=True)
class Proof:
    """Hold what a patch is, and what the checker said of it."""

    spans: tuple[Span, ...]
    report: Report
    refuted: Point | None = None  # a further point at which it is wrong
    sized: bool = False  # whether it fits the given shapes only, as the rule did before

    @property
    def holds(self) -> bool:
        """Tell whether the checker found the edited rule right, at every size."""
        cut = any(f.reason == "budget" for f in self.report.findings)  # what was not asked is not proven
        return self.report.verdict == "right" and not self.sized and not cut and self.refuted is None

    @property
    def failing(self) -> tuple[str, Arrays] | None:
        """Give a point at which the first order is wrong, in words and numbers."""
        if self.refuted is not None:
            return self.refuted.label, self.refuted.inputs
        found = ((f.point, f.inputs) for f in self.report.failures if f.probe == "derivative")
        return next(((label, inputs) for label, inputs in found if inputs is not None), None)


@dataclass
class Prover:
    """Prove variants of one region."""

    region: Region
    subject: Subject
    host: Host
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    settings: Settings
    function: Any = None  # the rule, as it is called
    checks: int = 0
    saved: Saved | None = None
    unsaved: dict[str, Any] = field(default_factory=dict)  # values that the forward has, and does not keep

    def missing(self, tried: Tried) -> dict[str, Any]:
        """Give what a variant reads, and the forward does not keep for it."""
        read = {n.id for n in ast.walk(tried.tree) if isinstance(n, ast.Name)} if self.unsaved else set()
        return {name: value for name, value in self.unsaved.items() if name in read}

    def text(self, tried: Tried) -> tuple[tuple[Span, ...], str] | None:
        """Give the edited text; None where it does not say what was tried."""
        region, meant_tree = self.region, tried.tree
        more: list[Span] = []
        missing = self.missing(tried)
        if missing:
            hunk = None if self.saved is None else self.saved.hunk(tried.tree, missing)
            if hunk is None:
                return None
            meant_tree, more = exchanged(tried.tree, hunk[0]), hunk[1]
        try:
            found = spans(region.tree, meant_tree, region.source)
            found = tuple(sorted((*found, *more), key=lambda span: span.start))
            text = edited(region.source.text, found)
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        for old, new in zip(region.tree.body, meant_tree.body):
            here = old.value if isinstance(old, ast.Expr) and isinstance(old.value, ast.Lambda) else old
            meant = new.value if isinstance(new, ast.Expr) and here is not old else new
            there = _followed(tree, _way(region.source.tree, here))
            if there is None or ast.dump(there) != ast.dump(meant):
                return None
        return found, text

    def subject_of(self, text: str) -> Subject | None:
        """Make a subject of the edited text."""
        try:
            parts = Remade(self.region, text)
            function = self.subject.remade(parts)
            if function is None:
                return None
            parts.bind(self.function, function)
            if isinstance(getattr(self.function, "__self__", None), type):  # the `apply` of a class
                parts.bind(self.function.__self__, function.__self__)
            made = subject_of(self.host, function, self.args, self.kwargs)
        except Exception:  # what an edit makes may fail in any way it likes
            return None
        given = self.subject
        return replace(
            made, domain=given.domain, accuracy=given.accuracy, order=given.order, is_builtin=False
        )

    def prove(self, tried: Tried, budget: float) -> Proof | None:
        """Check a variant to the second order; None where it cannot be made."""
        written = self.text(tried)
        made = None if written is None else self.subject_of(written[1])
        if written is None or made is None:
            return None
        self.checks += 1
        try:
            if not _alike(made.forward(made.inputs), self.subject.forward(made.inputs)):
                return None  # it computes something else
            report = check_subject(made, replace(self.settings, budget=budget))
        except Exception:  # the edited function may fail at its example
            return None
        sized = any("size seems to be written" in f.sentence for f in report.findings)
        proof = Proof(written[0], report, sized=sized)
        if not proof.holds:
            return proof
        refuted = self._refuted(tried, made)
        sized = refuted is not None and refuted.resized and self._fails(refuted)
        return replace(proof, refuted=refuted, sized=sized)

    def _refuted(self, tried: Tried, made: Subject) -> Point | None:
        """Look at further points, and on both sides of the numbers that new conditions compare with.

        A right rule is right wherever its forward runs: at every length of an axis that may change. Where
        axes are equal on purpose, a forward may run at others, too: there it need not fit.
        """
        fine = (made.astype("float64") if made.astype is not None else None) or made
        fine = within(replace(fine, domain=made.domain))
        # Axes of large inputs are not lengthened: those of smaller ones are.
        large = sum(x.size for x in fine.inputs) > LARGE
        fine = fine.at(shrunk(fine, fine.inputs)) if large else fine
        points = [
            *own_points(fine, self.settings.rng(61), apart=True),
            *_beside(tried, fine.inputs, self.settings.rng(62)),
        ]
        for point in points:
            if finite(fine, point.inputs) is None:
                continue
            if point.extreme and self._overflows(made, point):
                return point
            try:
                found = examine(fine, point, self.settings.rng(63), self.settings, own=True)
            except Exception:  # a gradient may have no value where its function has one
                if self._fails(point) and (point.apart or not point.resized):
                    continue
                return point
            if found.verdict != "wrong" or excuse(fine, point, found, self.settings):
                continue
            if not (point.apart and self._fails(point)):
                return point
        return None

    def _fails(self, point: Point) -> bool:
        """Tell whether the rule as it is fails at a point, too, or does not fit the shapes there."""
        return not fits(self.subject, self._given(point))

    def _overflows(self, made: Subject, point: Point) -> bool:
        """Tell whether a variant is not finite at a point where the rule as it is was."""
        given = self._given(point)
        outputs = finite(self.subject, given)
        if outputs is None:
            return False
        ones = tuple(map(np.ones_like, outputs))
        old, new = (_is_finite(subject, given, ones) for subject in (self.subject, made))
        return old and not new

    def _given(self, point: Point) -> Arrays:
        """Give a point in the dtypes that the rule was given."""
        return tuple(x.astype(g.dtype) for x, g in zip(point.inputs, self.subject.inputs))

    def twice(self, tried: Tried, inputs: Arrays) -> bool:
        """Tell whether the second order of a variant is right at a point."""
        written = self.text(tried)
        made = None if written is None else self.subject_of(written[1])
        if made is None or made.second is None:
            return False
        fine = (made.astype("float64") if made.astype is not None else None) or made
        lifted = second_subject(fine.at(inputs), self.settings.rng(51))
        found = derivative_test(Problem.of(lifted), self.settings.rng(52), self.settings)
        return found.verdict == "right"

    def patch(self, tried: Tried, proof: Proof, points: tuple[str, ...]) -> Patch:
        """Hand a proven variant over."""
        kept = [f"the forward does not keep `{name}` for it" for name in self.missing(tried)]
        words = "; ".join([*dict.fromkeys(edit.words for edit in tried.edits), *kept])
        second = (f for f in proof.report.findings if f.probe == "second_order" and f.answer == "yes")
        order = 2 if any(second) else 1
        known = [edit.explains for edit in tried.edits]
        explains = None if None in known else tuple(cause for some in known for cause in some or ())
        source = self.region.source
        return Patch(source.file, source.text, proof.spans, words, points, order, explains)


def _is_finite(subject: Subject, inputs: Arrays, cotangents: Arrays) -> bool:
    try:
        found = subject.pullback(inputs, cotangents)
    except Exception:  # a gradient may have no value where its function has one
        return False
    return all(g is None or bool(np.isfinite(g).all()) for g in found)


def _beside(tried: Tried, inputs: Arrays, rng: np.random.Generator) -> Iterator[Point]:
    """Draw points whose entries lie close to the numbers in new conditions, on both sides."""
    new = [part for edit in tried.edits for _, node in edit.changes for part in ast.walk(node)]
    numbers = {
        float(n.value)
        for part in new
        if isinstance(part, ast.Compare)
        for n in ast.walk(part)
        if isinstance(n, ast.Constant) and isinstance(n.value, (int, float)) and n.value
    }
    for number in sorted(numbers):
        for near in (1e-3, 1e-2, 5e-2):
            drawn = tuple(
                (number * rng.choice([-1, 1], x.shape) * (1 + near * rng.choice([-1, 1], x.shape))).astype(
                    x.dtype
                )
                if x.dtype.kind == "f"
                else x
                for x in inputs
            )
            for k, x in enumerate(inputs):
                if x.dtype.kind == "f":
                    yield Point(
                        f"beside {number:g}",
                        tuple(d if i == k else y for i, (d, y) in enumerate(zip(drawn, inputs))),
                    )


def _way(tree: ast.AST, node: ast.AST) -> list[tuple[str, int]] | None:
    """Give the way from the root of a tree to a node."""
    if tree is node:
        return []
    for name, index, child in children(tree):
        rest = _way(child, node)
        if rest is not None:
            return [(name, index), *rest]
    return None


def _followed(tree: ast.AST, way: list[tuple[str, int]] | None) -> ast.AST | None:
    if way is None:
        return None
    found: Any = tree
    for name, index in way:
        found = getattr(found, name, None)
        if index >= 0:
            found = found[index] if isinstance(found, list) and index < len(found) else None
        if found is None:
            return None
    return found if isinstance(found, ast.AST) else None
