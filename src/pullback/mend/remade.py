"""The functions of a file, made anew of its edited text.

The module is not run again. Its functions are made anew, with the same closures, and call each other in a
namespace of their own; the user's own objects stay as they are.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

from pullback.mend.region import Region


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
        return isinstance(function, FunctionType) and (
            self._path(function.__code__) is not None or self._holds(function)
        )

    def __getitem__(self, function: Any) -> Any:
        if function not in self:
            raise KeyError(function)
        return self._made(function)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def _holds(self, function: FunctionType, depth: int = 4) -> bool:
        """Tell whether a function of another file holds one of this file in its closure."""
        held = (part for cell in function.__closure__ or () for part in _held(cell))
        return depth > 0 and any(
            self._path(part.__code__) is not None or self._holds(part, depth - 1)
            for part in held
            if isinstance(part, FunctionType)
        )

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
        path = self._path(function.__code__)
        code = function.__code__ if path is None else self.new.get(path)
        if code is None or code.co_freevars != function.__code__.co_freevars:
            raise KeyError(function)
        cells = tuple(CellType() for _ in code.co_freevars)
        space = function.__globals__ if path is None else self._space(function.__globals__)
        made = FunctionType(code, space, function.__name__, function.__defaults__, cells)
        self.made[id(function)] = made
        made.__kwdefaults__ = function.__kwdefaults__
        made.__dict__.update({name: self._put(value) for name, value in vars(function).items()})
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        for cell, old in zip(cells, function.__closure__ or ()):
            try:
                value = old.cell_contents
            except ValueError:  # a cell that is not filled yet
                continue
            cell.cell_contents = self._put(value)
        return made

    def bind(self, old: Any, new: Any) -> None:
        """Let what was made anew call what was made of it: a forward may call its own rule."""
        for space in self.spaces.values():
            space.update({name: new for name, value in space.items() if value is old})
        for made in self.made.values():
            for cell in made.__closure__ or ():
                if any(value is old for value in _held(cell)):
                    cell.cell_contents = new

    def _put(self, value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(self._put(part) for part in value)
        return self._made(value) if value in self else value


def _held(cell: CellType) -> list[Any]:
    """List what a cell holds: a function, or several."""
    try:
        value = cell.cell_contents
    except ValueError:  # a cell that is not filled yet
        return []
    return list(value) if type(value) in (list, tuple) else [value]


def _paths(code: CodeType, path: tuple[Any, ...] = ()) -> Iterator[tuple[CodeType, tuple[Any, ...]]]:
    """Name code objects by where they stand in one another."""
    yield code, path
    counts: dict[str, int] = {}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            nth = counts[part.co_name] = counts.get(part.co_name, -1) + 1
            yield from _paths(part, (*path, (part.co_name, nth)))
