"""Functions that no framework can see into, as hosts are handed them."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any, Protocol


class Foreign(Protocol):
    """A function of NumPy arrays that no framework can see into.

    It is pure: the same arrays give the same results, and a framework may call it more or less often than
    the program says. Arrays arrive read-only, and are the framework's own memory where that is possible:
    what it keeps of them, it copies. A result is copied if somebody else holds it.
    """

    name: str
    where: str
    token: int  # from `register`: names it in compiled programs of this process, which hold numbers only

    def __call__(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Run the function once."""

    def batch(self, arrays: Sequence[Any], mapped: Sequence[bool]) -> Sequence[Any]:
        """Run it for a batch: arrays that are mapped have a leading axis of it, and so has every result."""


_tokens = itertools.count(1)
_foreigns: weakref.WeakValueDictionary[int, Foreign] = weakref.WeakValueDictionary()


def register(foreign: Foreign) -> int:
    """Give a foreign function a number of its own, that finds it as long as somebody holds it."""
    token = next(_tokens)
    _foreigns[token] = foreign
    return token


def registered(token: int) -> Foreign:
    """Find a foreign function by its number."""
    return _foreigns[token]
