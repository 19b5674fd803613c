"""Where a function switches: the operations inside it that compare, clip, round or are singular somewhere.

A host says how it looks inside; each operation gives a *gap*, an array that is zero where the operation
switches: the difference of what is compared, the distance from an integer, a denominator. The checker moves
inputs until a gap is zero.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import hosts
from pullback.view import rules
from pullback.view.subject import Array, Arrays

if TYPE_CHECKING:
    from pullback.view.adapter import Adapter
    from pullback.view.framework import Run

Gaps = list[tuple[str, Any]]

# What makes the gaps of an operation of its operands, by kinds of operations.
COMPARED = frozenset({"gt", "ge", "lt", "le", "eq", "ne", "maximum", "minimum", "max", "min"})
ROUNDED = frozenset({"floor", "ceil", "trunc"})
HALVED = frozenset({"round"})
SINGULAR = frozenset(
    {"abs", "sign", "relu", "sqrt", "rsqrt", "log", "reciprocal", "prod", "cumprod", "pow", "elu"}
)
DIVIDED = frozenset({"div", "remainder"})
CLIPPED = frozenset({"clamp"})


def gaps_of(name: str, operands: Sequence[Any], floor: Callable[[Any], Any]) -> list[Any]:
    """Give the arrays that are zero where an operation switches."""
    if name in COMPARED and len(operands) > 1:
        return [operands[0] - operands[1]]
    if name in ROUNDED:
        return [operands[0] - floor(operands[0] + 0.5)]
    if name in HALVED:
        return [operands[0] - floor(operands[0]) - 0.5]
    if name in SINGULAR:
        return [operands[0]]
    if name in DIVIDED and len(operands) > 1:
        return [operands[1]]
    if name in CLIPPED:
        return [operands[0] - bound for bound in operands[1:3] if bound is not None]
    return []


def _inside(adapter: Adapter) -> Any:
    """Import how the host looks inside; None where it cannot."""
    try:
        return import_module(f"pullback.view.{hosts.framework_of(adapter.host)}.switches")
    except ModuleNotFoundError:
        return None


def repeats(adapter: Adapter, body: Run) -> Callable[[Arrays], int] | None:
    """Give how often a function runs its most frequent operation, by its inputs."""
    inside = _inside(adapter)

    def count(inputs: Arrays) -> int:
        with adapter.surroundings():
            return int(inside.repeats(body, adapter.sources(inputs)))

    return None if inside is None else count


def of(adapter: Adapter, body: Run) -> Callable[[Arrays], list[tuple[str, Array]]] | None:
    """Give the gaps of a function and its pullback by its inputs; None on a host that cannot look inside."""
    inside = _inside(adapter)
    if inside is None:
        return None
    run, by_hand = adapter.run(), rules.by_hand(adapter)

    def both(sources: Sequence[Any]) -> list[Any]:
        found = list(body(sources))
        with contextlib.suppress(Exception):  # a function has switches where its pullback fails
            if inside.TRACES:
                return [*found, *(g for g in adapter.vjp(run, sources, run(sources)) if g is not None)]
            if by_hand is not None:
                by_hand(tuple(map(adapter.array, sources)), tuple(map(adapter.array, found)))
        return found

    watched = inside.look(both)

    def switches(inputs: Arrays) -> list[tuple[str, Array]]:
        with adapter.surroundings():
            found = watched(adapter.sources(inputs))
            return [(name, np.asarray(adapter.array(gap), np.float64)) for name, gap in found]

    return switches
