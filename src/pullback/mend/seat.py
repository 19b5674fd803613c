"""Seats: the functions that a gradient runs, each open to edits in its own place.

A gradient may be a few lines around what somebody handed in, or call a function of its file. Such a function
is open if nothing else uses it: an edit must not change the forward, or another rule. What a maker was handed
is opened in the place of the maker, which other rules share.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from types import CellType, CodeType, FunctionType
from typing import Any, TypeAlias

from pullback.mend.pure import COMPUTING
from pullback.mend.region import around, written
from pullback.mend.source import Function, RefusedError, Source
from pullback.rule import cells, global_names

DEEPEST, MOST = 5, 6


@dataclass(frozen=True)
class Step:
    """Say how a function reaches another: by which name, of its closure or its module, and which item."""

    name: str
    index: int | None = None
    by_cell: bool = True

    def value(self, function: FunctionType) -> Any:
        """Give what stands under the name."""
        if not self.by_cell:
            return function.__globals__[self.name]
        return dict(cells(function))[self.name]

    def follow(self, function: FunctionType) -> FunctionType:
        """Give the function that is reached."""
        value = self.value(function)
        found: FunctionType = value if self.index is None else value[self.index]
        return found

    def put(self, function: FunctionType, new: Any) -> FunctionType:
        """Copy a function, with another one under the name."""
        value = self.value(function)
        if self.index is not None:
            new = type(value)(new if i == self.index else part for i, part in enumerate(value))
        cells, space = function.__closure__, function.__globals__
        if self.by_cell:
            names = function.__code__.co_freevars
            cells = tuple(CellType(new) if n == self.name else c for n, c in zip(names, cells or ()))
        else:
            space = {**space, self.name: new}
        return copied(function, cells, space)


Way: TypeAlias = "tuple[Step, ...]"


def copied(function: FunctionType, cells: tuple[CellType, ...] | None, space: dict[str, Any]) -> FunctionType:
    """Copy a function, with another closure and another module."""
    made = FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def followed(grad: Callable[..., Any], way: Way) -> FunctionType:
    """Give the function at the end of a way from a gradient."""
    function = written(grad)
    for step in way:
        function = step.follow(function)
    return function


def seated(function: FunctionType, way: Way, new: Any) -> Any:
    """Copy a function so that another one stands at the end of a way from it."""
    if not way:
        return new
    return way[0].put(function, seated(way[0].follow(function), way[1:], new))


def ways(grad: Callable[..., Any], ran: Collection[CodeType] = ()) -> list[Way]:
    """List the ways to what is open, the most particular first; never to what the forward ran."""
    return list(islice(_Finder(ran).open(written(grad), ()), MOST))


class _Finder:
    """Look at each function once, and read each file once."""

    def __init__(self, ran: Collection[CodeType]) -> None:
        self.ran = ran
        self.seen: set[int] = set()
        self.sources: dict[str, Source | None] = {}

    def open(self, function: FunctionType, way: Way) -> Iterator[Way]:
        if id(function) in self.seen or len(way) > DEEPEST:
            return
        self.seen.add(id(function))
        theirs = is_theirs(function)
        every = _steps(function, cells_only=theirs)
        steps = [s for s in every if s.follow(function).__code__ not in self.ran]
        given = set() if theirs else self.handed(function)
        handed = [s for s in steps if s.by_cell and s.name in given and not is_theirs(s.follow(function))]
        for step in handed:
            yield from self.open(step.follow(function), (*way, step))
        if not theirs and not handed and (not way or self.is_its_own(function)):
            yield way
        for step in steps:
            yield from self.open(step.follow(function), (*way, step))

    def node(self, function: FunctionType) -> tuple[Source, Function] | None:
        file = function.__code__.co_filename
        try:
            if file not in self.sources:
                self.sources[file] = None
                self.sources[file] = Source.of(file)
            source = self.sources[file]
            return None if source is None else (source, source.function(function.__code__))
        except RefusedError:
            return None

    def handed(self, function: FunctionType) -> set[str]:
        """Name what the functions around this one were handed."""
        found = self.node(function)
        names: set[str] = set()
        while found is not None:
            source, inner = found
            outer = around(source.tree, inner)
            if not isinstance(outer, (ast.FunctionDef, ast.Lambda)):
                break
            names |= {n.arg for n in ast.walk(outer.args) if isinstance(n, ast.arg)}
            found = source, outer
        return names

    def is_its_own(self, function: FunctionType) -> bool:
        """Tell whether its file uses a function once, or calls it in one function only."""
        found = self.node(function)
        if found is None:
            return False
        source, node = found
        names = {node.name} if isinstance(node, ast.FunctionDef) else set()
        for statement in ast.walk(source.tree):
            if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and statement.value is node:
                names |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and _is_stored(n)}
        inside = {id(n) for n in ast.walk(node)}
        outside = [n for n in ast.walk(source.tree) if id(n) not in inside]
        uses = [
            n
            for n in outside
            if (isinstance(n, ast.Name) and n.id in names and not _is_stored(n))
            or (isinstance(n, ast.Attribute) and n.attr in names)
        ]
        called = {id(n.func) for n in outside if isinstance(n, ast.Call)}
        users = {id(around(source.tree, n)) for n in uses}
        return len(uses) <= 1 or (len(users) == 1 and all(id(n) in called for n in uses))


def is_theirs(function: FunctionType) -> bool:
    """Tell whether a function belongs to a package that computes: it is not the user's to edit."""
    return str(function.__globals__.get("__name__", "")).partition(".")[0] in COMPUTING


def _steps(function: FunctionType, *, cells_only: bool) -> Iterator[Step]:
    for name, value in cells(function):
        for index, part in enumerate(value) if type(value) in (list, tuple) else ((None, value),):
            if _is_undecorated(part) and part is not function:
                yield Step(name, index)
    if cells_only:
        return
    for name in global_names(function.__code__):
        value = function.__globals__.get(name)
        if not isinstance(value, FunctionType) or not _is_undecorated(value) or value is function:
            continue
        if value.__code__.co_filename == function.__code__.co_filename:
            yield Step(name, by_cell=False)


def _is_undecorated(value: Any) -> bool:
    return isinstance(value, FunctionType) and not hasattr(value, "__wrapped__")


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)
