"""Bounds among the arguments: whose sign is a promise, because a function says by it where it switches.

A clip to [0, a] has an inside for a > 0 alone. For an a below zero, which no program has that learns one, the
function is another: what it compares never switches, whatever the other arguments are, or its switches stand
in another order. A factor or a shift of one sign is no bound: with it, what switches does so for some others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from pullback.checker.directions import signed
from pullback.checker.promises import turned
from pullback.dtypes import is_real_or_complex
from pullback.view.subject import Array, Arrays, Subject

FAR = 1e3  # sizes of the other arguments: beyond any bound that goes with them
Gaps = list[Array]


def lost_bound(subject: Subject, inputs: Arrays) -> str | None:
    """Name a bound of the given arguments that has another sign at a point; None if there is none."""
    if subject.switches is None:
        return None
    for k in turned(subject.inputs, inputs):
        try:
            kept = _around(subject.switches, inputs, k, subject.inputs[k])
            lost = _around(subject.switches, inputs, k, inputs[k])
        except Exception:  # outside the domain, or of a shape that does not go with the others
            continue
        if _bounds(kept, lost):
            return subject.names[k]
    return None


def _around(
    switches: Callable[[Arrays], list[tuple[str, Array]]], inputs: Arrays, k: int, value: Array
) -> list[Gaps]:
    """Give the gaps for several others of one argument: as they are, and far out on either side."""
    rng = np.random.default_rng(k)  # the same for each value
    ways = [np.asarray(signed(rng, x.size).reshape(x.shape)) for x in inputs]
    found = []
    for far in (0.0, FAR, -FAR):
        moved = [
            (x + far * (1 + np.abs(x)) * way).astype(x.dtype) if is_real_or_complex(x.dtype) else x
            for x, way in zip(inputs, ways)
        ]
        moved[k] = value
        found.append([gap for _, gap in switches(tuple(moved))])
    return found


def _bounds(kept: Sequence[Gaps], lost: Sequence[Gaps]) -> bool:
    """Tell whether a switch is out of reach, or two are in another order, once the argument is another."""
    if len({len(gaps) for gaps in (*kept, *lost)}) != 1:
        return False
    apart = [
        (np.stack(a), np.stack(b))
        for a, b in zip(zip(*kept), zip(*lost))
        if len({gap.shape for gap in (*a, *b)}) == 1 and np.isfinite([*a, *b]).all()
    ]
    moving = [(a, b) for a, b in apart if not np.array_equal(a[0], a[1])]  # they depend on the others
    return any(map(_out_of_reach, moving)) or any(
        _in_other_order(a - c, b - d) for (a, b), (c, d) in combinations(moving, 2) if a.shape == c.shape
    )


def _out_of_reach(gaps: tuple[Array, Array]) -> bool:
    """Tell whether a gap had both signs, and has one."""
    kept, lost = gaps
    return _has_both(kept) and bool(lost.any()) and not _has_both(lost)


def _has_both(gap: Array) -> bool:
    return bool((gap > 0).any() and (gap < 0).any())


def _in_other_order(kept: Array, lost: Array) -> bool:
    """Tell whether the distance of two switches, which no other argument changes, has not its sign."""
    if not all(np.allclose(distance, distance[0], rtol=1e-6, atol=0) for distance in (kept, lost)):
        return False
    sign = np.sign(kept.flat[0])
    return bool(sign and (kept * sign > 0).all() and (lost * sign <= 0).any())
