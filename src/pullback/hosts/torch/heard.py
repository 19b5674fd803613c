"""What is known of a body from having listened to it once.

The key is the id of the code, which is kept beside the answer and so stays its own.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from pullback.hosts.base import Derived, Operation


@dataclasses.dataclass
class Heard:
    """Tell what a body was heard doing."""

    identity: Any
    reaches: bool = False  # it takes tensors that are neither arguments nor in reach by name
    returns: bool = False  # it returns a tensor that it did not compute
    random: bool = False

    @functools.cached_property
    def plain(self) -> bool:
        """Tell whether there is nothing to listen to, and nothing to copy."""
        return not (self.reaches or self.returns)


_known: dict[int, Heard] = {}
_QUIET, _RANDOM = Heard(None), Heard(None, random=True)


def of(operation: Operation) -> Heard | None:
    """Give what was heard of a body; None if nobody has listened to it."""
    found = _known.get(id(operation.identity))
    if found is None and isinstance(operation, Derived):  # no code beyond that of what it is derived from
        inner = getattr(operation, "inner", None)
        around = None if inner is None else of(inner)
        return _RANDOM if around is not None and around.random else _QUIET
    return found


def draws(operation: Operation) -> bool:
    """Tell whether a body is known to draw random numbers."""
    found = of(operation)
    return found is not None and found.random


def remember(operation: Operation, *, reaches: bool, returns: bool, random: bool) -> None:
    """Remember what was heard of a body."""
    _known[id(operation.identity)] = Heard(operation.identity, reaches, returns, random)


def remember_random(operation: Operation) -> None:
    """Remember that a body draws random numbers."""
    while hasattr(operation, "inner"):
        operation = operation.inner
    found = _known.get(id(operation.identity))
    if found is None:
        remember(operation, reaches=False, returns=False, random=True)
    else:
        found.random = True
