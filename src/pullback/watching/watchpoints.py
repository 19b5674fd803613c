"""The places that gradients are looked at, by number: what is compiled knows one by its number alone.

One that a program names is heard by every open log, one in a model by the logs of that model. Its number
stays the same from log to log, so that a function that was compiled under one log is heard by the next. The
model itself is held weakly.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any


class Watchpoint:
    """Where gradients are looked at."""

    def __init__(self, number: int, name: str, kind: str, owner: Any) -> None:
        self.number, self.name = number, name
        self.kind = kind  # "place", "output" or "weight"
        self.owner: Any = None if owner is None else weakref.ref(owner)
        self.rank = 0  # when a gradient came here first: the order of the backward pass

    def arrived(self) -> None:
        """Note that a gradient is here, or will be, in the order in which they come."""
        if not self.rank:
            self.rank = next(_ranks)


_ranks = itertools.count(1)
_known: list[Watchpoint] = []
_numbers: dict[tuple[str, str, int], int] = {}
_lock = threading.Lock()


def number(name: str, kind: str = "place", owner: Any = None) -> int:
    """Give the number of a watchpoint."""
    key = (name, kind, id(owner) if owner is not None else 0)
    found = _numbers.get(key)
    if found is not None and (owner is None or _known[found].owner() is owner):
        return found
    with _lock:
        if _numbers.get(key) not in (None, found):
            return _numbers[key]  # another thread was faster
        point = Watchpoint(len(_known), name, kind, owner)
        _known.append(point)
        _numbers[key] = point.number
    return point.number


def of(number: int) -> Watchpoint:
    """Find a watchpoint by its number."""
    return _known[number]


# A compiler that reads Python runs these, and does not read them.
number._dynamo_marked_constant = True  # type: ignore[attr-defined]
