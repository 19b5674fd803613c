"""Which statics are the same: names for values that tell apart whatever a function could.

Equality is what a class makes of it: `1 == True`, `0.0 == -0.0`, `Decimal("1.0") == Decimal("1.00")`, and a
dataclass may leave fields out. So a value of Python's own kinds is named by its type and its content, down to
the bits, and so is a dataclass, field by field. Anything else has no value that can be seen: it is itself.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import struct
import types
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from pullback.tree import Tree

_ATOMS = frozenset({type(None), bool, int, str, bytes, type(Ellipsis), type(NotImplemented)})
# Equal is not the same here: 0.0 and -0.0, 1.0 and 1.00.
_CONTENTS: dict[type, Callable[[Any], Any]] = {
    float: struct.Struct("d").pack,
    complex: lambda value: struct.pack("dd", value.real, value.imag),
    Decimal: Decimal.as_tuple,
    Fraction: Fraction.as_integer_ratio,
}
_BY_NAME = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc, enum.Enum)


class Itself:
    """An object that is the same as no other, and is kept so that none can take its place in memory."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


class MutableError(Exception):
    """Somebody may change a value later on."""


def lasting(value: Any, hidden: list[Any] | None = None) -> Any:
    """Name a value that stays as it is; an object without a value that can be seen joins the `hidden` ones.

    Raises `MutableError` for a list, a dict and the like: what is kept under their name could change.
    """
    return _name(value, False, [] if hidden is None else hidden)


def content(value: Any, hidden: list[Any]) -> Any:
    """Name a value by what it is now; an object without a value that can be seen joins the `hidden` ones."""
    return _name(value, True, hidden)


def _name(value: Any, now: bool, hidden: list[Any]) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return kind, value
    if kind in _CONTENTS:
        return kind, _CONTENTS[kind](value)
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        return kind, value.dtype.str, value.tobytes()
    name = functools.partial(_name, now=now, hidden=hidden)
    if kind in (range, slice):
        return kind, *map(name, (value.start, value.stop, value.step))
    if isinstance(value, tuple) and not hasattr(value, "__dict__"):  # named tuples, too
        return kind, *map(name, value)
    if kind is frozenset:
        return kind, frozenset(map(name, value))
    return _name_of_object(value, now, hidden, name)


def _name_of_object(value: Any, now: bool, hidden: list[Any], name: Callable[[Any], Any]) -> Any:
    """Name what may change, by its parts, and what has none that can be seen."""
    kind = type(value)
    fields = _fields(value)
    changes = kind in (list, set, dict, bytearray, np.ndarray) or (
        fields is not None and not kind.__dataclass_params__.frozen
    )
    if changes and not now:
        raise MutableError
    if fields is not None:
        return kind, *((field, name(part)) for field, part in fields.items())
    if kind is list:
        return kind, *map(name, value)
    if kind is set:
        return kind, frozenset(map(name, value))
    if kind is dict:
        return kind, *((name(k), name(v)) for k, v in value.items())
    if kind is bytearray:
        return kind, bytes(value)
    if kind is np.ndarray:
        return kind, fingerprint(value)
    if not isinstance(value, _BY_NAME):
        hidden.append(value)
    return Itself(value)


def _fields(value: Any) -> dict[str, Any] | None:
    """List all that a dataclass holds, compared or not; None for what else there may be in an object."""
    names = getattr(type(value), "__dataclass_fields__", None)
    if names is None or not all("__dataclass_fields__" in vars(kind) for kind in type(value).__mro__[:-1]):
        return None
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return held | getattr(value, "__dict__", {})


def structure(tree: Tree | None) -> Any:
    """Name how a structure was built; one that only a host can put together is itself."""
    if tree is None:
        return None
    if tree.build_one is not None:  # a module, a registered class: it holds more than its parts
        return Itself(tree)
    names = _name(list(tree.template), True, []) if isinstance(tree.template, dict) else None
    return type(tree.template), names, tuple(map(structure, tree.children))


def shows_all(tree: Tree | None) -> bool:
    """Tell whether a structure is nothing but its parts."""
    return tree is None or (tree.build_one is None and all(map(shows_all, tree.children)))


def fingerprint(array: np.ndarray[Any, Any]) -> Any:
    """Name an array by its content."""
    if array.dtype.hasobject:  # strings
        return array.shape, array.dtype, content(array.tolist(), [])
    data = np.ascontiguousarray(array)
    bits: Any = data.reshape(-1).view(np.uint8) if data.size else b""
    return array.shape, array.dtype, hashlib.blake2b(bits, digest_size=16).digest()
