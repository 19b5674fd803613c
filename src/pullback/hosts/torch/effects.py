"""What a body does beside computing its outputs, known from having listened to it.

The key is the id of the code, which is kept beside the answer and so stays its own.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from pullback.hosts.operation import Derived, Operation


@dataclasses.dataclass
class Effects:
    """What a body takes from outside, and draws."""

    identity: Any
    reaches: bool = False  # it takes tensors that somebody differentiates, or differentiates by itself
    random: bool = False
    quiet: bool = True  # neither of both


_known: dict[int, Effects] = {}
_QUIET, _RANDOM = Effects(None), Effects(None, random=True, quiet=False)


def of(operation: Operation) -> Effects | None:
    """Give the effects of a body; None if nobody has listened to it."""
    found = _known.get(id(operation.identity))
    if found is None and isinstance(operation, Derived):  # no code beyond that of what it is derived from
        inner = getattr(operation, "inner", None)
        around = None if inner is None else of(inner)
        return _RANDOM if around is not None and around.random else _QUIET
    return found


def is_quiet(operation: Operation) -> bool:
    """Tell whether a body is known to draw no random numbers and to take no tensors but its own."""
    found = _known.get(id(operation.identity))
    return found is not None and found.quiet


def draws(operation: Operation) -> bool:
    """Tell whether a body is known to draw random numbers."""
    found = of(operation)
    return found is not None and found.random


def remember(operation: Operation, *, reaches: bool = False, random: bool = False) -> None:
    """Remember what a body was heard doing, beside what is known of it."""
    while hasattr(operation, "inner"):
        operation = operation.inner
    found = _known.setdefault(id(operation.identity), Effects(operation.identity))
    found.reaches = found.reaches or reaches
    found.random = found.random or random
    found.quiet = not (found.reaches or found.random)
