"""Whether a body can reach a tensor that it is not handed: most cannot, and need no listening.

Such a body is called with tensors and constants, and names nothing but constants, the code of libraries, and
functions of the program of which the same is true. What the names mean is looked at in every call: a global
can be bound anew.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from pullback.hosts import ROOTS
from pullback.hosts.operation import Derived
from pullback.rule import global_names, names_in

# the modules of the standard library through which everything can be reached are none of these
_EVERYTHING = {"builtins", "gc", "importlib", "inspect", "sys"}
_LIBRARIES = (frozenset(sys.stdlib_module_names) - _EVERYTHING) | {*ROOTS, "keras", "numpy", "pullback"}
_RECORDING = {"GradientTape", "ForwardAccumulator"}  # it records by itself
_DTYPES = {"DType", "dtype"}
_CONSTANTS = (int, float, complex, str, bytes, type(None), np.ndarray, np.generic, np.ufunc)
_NO_NAMES = {"__import__", "eval", "exec", "globals", "vars"}  # they find what the code does not name
_CLOSED = "what the names in reach of the body meant, and whether all of it was code and constants"
_MOST = 200  # names that are followed

Named = tuple[Callable[[], Any], Any]  # a way to look a name up, and what it meant


def is_closed(operation: Any) -> bool:
    """Tell whether a body reaches its tensors, code and constants, and nothing else."""
    if isinstance(operation, Derived):  # it has no body of the user's
        return False
    known = operation.memo.get(_CLOSED)
    if known is not None:
        names, closed = known
        try:
            for look, value in names:
                if look() is not value:
                    break
            else:
                return closed and operation.plan.closed
        except ValueError:  # a cell that is empty now
            pass
    names = []
    closed = _follow(operation.plan.rule.body, names)
    operation.memo[_CLOSED] = names, closed
    return closed and operation.plan.closed


def watched(operation: Any) -> list[Named]:
    """List the names in reach of a body that was looked at, and what they meant."""
    return operation.memo[_CLOSED][0]


def _follow(function: Any, found: list[Named]) -> bool:
    """List what a function names, and what the functions among it name; tell whether all of it is closed."""
    if type(function) is not FunctionType or not all(map(_is_note, function.__dict__)):
        return False  # an object, a rule or a wrapper holds more than it names
    code = function.__code__
    names = global_names(code)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    if not _NO_NAMES.isdisjoint(names) or _imports(code) or not all(map(_is_constant, defaults)):
        return False
    if not _RECORDING.isdisjoint(names_in(code)):
        return False
    for look, value in _named(function, names):
        new = all(value is not known for _, known in found)
        found.append((look, value))
        if len(found) > _MOST:
            return False
        if new and not (_is_library(value) or _is_constant(value) or _follow(value, found)):
            return False
    return True


def _named(function: FunctionType, names: tuple[str, ...]) -> Iterator[Named]:
    for cell in function.__closure__ or ():
        look = partial(getattr, cell, "cell_contents")
        try:
            yield look, look()
        except ValueError:  # not filled yet
            yield lambda: None, cell
    space = function.__globals__
    for name in names:
        if name in space:
            yield partial(space.get, name), space[name]


def _is_note(attribute: str) -> bool:
    """Tell whether an attribute of a function was written by a decorator of ours, for us alone."""
    return attribute.startswith("__pullback_")


def _is_constant(value: Any) -> bool:
    kind = type(value)
    if kind is tuple:
        return all(map(_is_constant, value))
    return isinstance(value, _CONSTANTS) or (_top(kind.__module__) in _LIBRARIES and kind.__name__ in _DTYPES)


def _is_library(value: Any) -> bool:
    """Tell whether a value is code of a library."""
    if isinstance(value, BuiltinFunctionType) and value.__self__ is not None:
        value = value.__self__  # a module or a class; a method of an object is not
    if isinstance(value, ModuleType):
        return _top(value.__name__) in _LIBRARIES
    return (
        isinstance(value, FunctionType | BuiltinFunctionType | type) and _top(value.__module__) in _LIBRARIES
    )


@functools.lru_cache(maxsize=4096)
def _imports(code: CodeType) -> bool:
    inside = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return any(i.opname == "IMPORT_NAME" for i in dis.get_instructions(code)) or any(map(_imports, inside))


def _top(name: str | None) -> str:
    return (name or "").partition(".")[0]
