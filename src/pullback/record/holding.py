"""Tensors that an argument holds: found in it, and exchanged for others.

A function holds them in its closure, among the arguments of a `partial` and under the names of its code; an
object in its attributes. What can be changed is changed in place, and put back when the check ends; a tuple
or a `partial` is made anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, MutableMapping, MutableSequence, MutableSet, Sequence
from dataclasses import is_dataclass
from enum import Enum
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

from pullback import hosts, tree
from pullback.rule import global_names

MOST = 2000  # things looked at: what is held may be a whole program
DEEPEST = 40
CHANGING = (MutableSequence, MutableMapping, MutableSet)
Undo: TypeAlias = "list[Callable[[], None]]"


def may_hold(value: Any) -> bool:
    """Tell whether a static may hold tensors."""
    if isinstance(value, (type, ModuleType)):
        return False
    return isinstance(value, (FunctionType, MethodType, functools.partial)) or hasattr(value, "__dict__")


def may_change(value: Any) -> bool:
    """Tell whether a static is something that one call may leave values in for another."""
    frozen = is_dataclass(value) and value.__dataclass_params__.frozen  # type: ignore[union-attr]
    if frozen or callable(value) or isinstance(value, (ModuleType, Enum)):
        return False
    static = hosts.role(type(value)) is hosts.Role.STATIC
    return issubclass(type(value), CHANGING) or (static and hasattr(value, "__dict__"))


def exchanged(value: Any, others: Sequence[tuple[Any, Any]], undo: Undo) -> Any:
    """Give a value that holds other tensors in the places of some, and write down how it was."""
    return _Exchange(others, undo).of(value)


class _Exchange:
    """Exchange the tensors of one argument."""

    def __init__(self, others: Sequence[tuple[Any, Any]], undo: Undo) -> None:
        self.others = {id(was): now for was, now in others}
        self.undo = undo
        self.met: set[int] = set()

    def of(self, value: Any, depth: int = 0) -> Any:
        if id(value) in self.others:
            return self.others[id(value)]
        beyond = depth > DEEPEST or len(self.met) > MOST
        if beyond or id(value) in self.met or not (tree.is_container(value) or may_hold(value)):
            return value
        if isinstance(value, tuple):
            parts = [self.of(part, depth + 1) for part in value]
            if all(new is old for new, old in zip(parts, value)):
                return value
            return type(value)(*parts) if tree.is_namedtuple(value) else type(value)(parts)
        if isinstance(value, functools.partial):
            held = (value.func, value.args, tuple(value.keywords.values()))
            function, args, named = now = self.of(held, depth + 1)
            return (
                value
                if now is held
                else functools.partial(function, *args, **dict(zip(value.keywords, named)))
            )
        self.met.add(id(value))
        if isinstance(value, dict):
            self._inside(value, list(value), depth)
        elif isinstance(value, list):
            self._inside(value, range(len(value)), depth)
        elif isinstance(value, MethodType):
            self.of(value.__self__, depth + 1)
        else:
            if isinstance(value, FunctionType):
                self._function(value, depth)
            self._inside(vars(value), list(vars(value)), depth)
        return value

    def _inside(self, holder: Any, keys: Sequence[Any], depth: int) -> None:
        for key in keys:
            old = holder[key]
            new = self.of(old, depth + 1)
            if new is not old:
                holder[key] = new
                self.undo.append(functools.partial(holder.__setitem__, key, old))

    def _function(self, function: FunctionType, depth: int) -> None:
        for cell in function.__closure__ or ():
            try:
                old = cell.cell_contents
            except ValueError:  # a name that was never given a value
                continue
            new = self.of(old, depth + 1)
            if new is not old:
                cell.cell_contents = new
                self.undo.append(functools.partial(setattr, cell, "cell_contents", old))
        if str(function.__module__).partition(".")[0] not in hosts.SUPPORTED:  # one of those holds no user's
            held = function.__globals__
            named = [name for name in global_names(function.__code__) if name in held]
            self._inside(held, named, depth)
