"""Proof: the edited text, compiled and run in a namespace of its own, is what the checker finds right.

The module is not run again. Its functions are made anew of the edited text, with the same closures, and call
each other there; the user's own objects stay as they are.
"""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import CellType, CodeType, FunctionType
from typing import Any

from pullback.checker.finding import Report
from pullback.checker.inquiry import check_subject
from pullback.checker.settings import Settings
from pullback.hosts.base import Host
from pullback.mend.bench import Tried
from pullback.mend.patch import Patch, Span
from pullback.mend.region import Region
from pullback.mend.tree import children, edited, spans
from pullback.view import subject_of
from pullback.view.subject import Subject


class Remade(Mapping[Any, Any]):
    """Give, of a function of the file, the one that the edited text makes in its place."""

    def __init__(self, region: Region, text: str) -> None:
        self.file = region.source.file
        self.old = dict(_paths(region.source.compiled))
        # Whoever reads the source of what runs, as AutoGraph does, must find the edited text.
        self.virtual = os.path.join("mended", os.path.basename(self.file))
        linecache.cache[self.virtual] = (len(text), None, text.splitlines(True), self.virtual)
        new = compile(text, self.virtual, "exec", dont_inherit=True)
        self.new = {path: code for code, path in _paths(new)}
        self.spaces: dict[int, dict[str, Any]] = {}
        self.made: dict[int, Any] = {}

    def __contains__(self, function: object) -> bool:
        return isinstance(function, FunctionType) and self._path(function.__code__) is not None

    def __getitem__(self, function: Any) -> Any:
        if function not in self:
            raise KeyError(function)
        return self._made(function)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def _path(self, code: CodeType) -> Any:
        if code.co_filename != self.file:
            return None
        known = self.old.get(code)
        if known is not None:
            return known
        where = (code.co_name, code.co_firstlineno)
        found = [path for other, path in self.old.items() if (other.co_name, other.co_firstlineno) == where]
        return found[0] if len(found) == 1 else None

    def _space(self, space: dict[str, Any]) -> dict[str, Any]:
        """Copy the namespace of a module, with its functions made anew in it."""
        if id(space) not in self.spaces:
            fresh = self.spaces[id(space)] = dict(space)
            for name, value in space.items():
                if value in self and value.__globals__ is space if isinstance(value, FunctionType) else False:
                    fresh[name] = self._made(value)
        return self.spaces[id(space)]

    def _made(self, function: FunctionType) -> FunctionType:
        if id(function) in self.made:
            made: FunctionType = self.made[id(function)]
            return made
        code = self.new.get(self._path(function.__code__))
        if code is None or code.co_freevars != function.__code__.co_freevars:
            raise KeyError(function)
        cells = tuple(CellType() for _ in code.co_freevars)
        made = FunctionType(
            code, self._space(function.__globals__), function.__name__, function.__defaults__, cells
        )
        self.made[id(function)] = made
        made.__kwdefaults__ = function.__kwdefaults__
        made.__dict__.update(function.__dict__)
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        for cell, old in zip(cells, function.__closure__ or ()):
            try:
                value = old.cell_contents
            except ValueError:  # a cell that is not filled yet
                continue
            cell.cell_contents = self._made(value) if value in self else value
        return made


def _paths(code: CodeType, path: tuple[Any, ...] = ()) -> Iterator[tuple[CodeType, tuple[Any, ...]]]:
    """Name code objects by where they stand in one another."""
    yield code, path
    counts: dict[str, int] = {}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            nth = counts[part.co_name] = counts.get(part.co_name, -1) + 1
            yield from _paths(part, (*path, (part.co_name, nth)))


@dataclass(frozen=True)
class Proof:
    """Hold what a patch is, and what the checker said of it."""

    spans: tuple[Span, ...]
    report: Report

    @property
    def holds(self) -> bool:
        """Tell whether the checker found the edited rule right, at every size."""
        sized = any("size seems to be written" in f.sentence for f in self.report.findings)
        return self.report.verdict == "right" and not sized


@dataclass
class Prover:
    """Prove variants of one region."""

    region: Region
    subject: Subject
    host: Host
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    settings: Settings
    checks: int = 0

    def text(self, tried: Tried) -> tuple[tuple[Span, ...], str] | None:
        """Give the edited text; None where it does not say what was tried."""
        region = self.region
        try:
            found = spans(region.tree, tried.tree, region.source)
            text = edited(region.source.text, found)
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        for old, new in zip(region.tree.body, tried.tree.body):
            here = old.value if isinstance(old, ast.Expr) and isinstance(old.value, ast.Lambda) else old
            meant = new.value if isinstance(new, ast.Expr) and here is not old else new
            there = _followed(tree, _way(region.source.tree, here))
            if there is None or ast.dump(there) != ast.dump(meant):
                return None
        return found, text

    def subject_of(self, text: str) -> Subject | None:
        """Make a subject of the edited text."""
        try:
            function = self.subject.remade(Remade(self.region, text))
            if function is None:
                return None
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
            report = check_subject(made, replace(self.settings, budget=max(budget, 0.5)))
        except Exception:  # the edited function may fail at its example
            return None
        return Proof(written[0], report)

    def patch(self, tried: Tried, proof: Proof, points: tuple[str, ...]) -> Patch:
        """Hand a proven variant over."""
        words = "; ".join(dict.fromkeys(edit.words for edit in tried.edits))
        order = (
            2 if any(f.probe == "second_order" and f.verdict == "right" for f in proof.report.findings) else 1
        )
        return Patch(self.region.source.file, self.region.source.text, proof.spans, words, points, order)


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
