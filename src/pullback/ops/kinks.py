"""What the rules with a chosen subgradient share: which choices are honest, and ties along an axis.

At a kink every number between the slopes of both sides is a subgradient, and no other one is.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

from pullback import hosts
from pullback.errors import OptionError
from pullback.hosts.specs import show_shape
from pullback.namespace import namespace
from pullback.ops.reduced import axes_of, spread
from pullback.options import require_word

TIES = ("even", "first")


def require_slope(verb: str, name: str, value: Any, low: float, high: float) -> None:
    """Refuse a slope that does not lie between those of both sides."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and low <= float(value) <= high:
        return
    raise OptionError.about(
        verb,
        found=f"{name}={value!r}"[:80],
        expected=f"a number from {low:g} to {high:g}" if high < math.inf else "a number that is not negative",
        why="what is not between the slopes of both sides is no subgradient",
        fix=f"{name}={max(low, 0.0):g}",
    )


def require_axes(verb: str, axis: Any, x: Any) -> tuple[int, ...] | None:
    """Give axes of x as a tuple; None is all of them."""
    return None if axis is None else axes_of(verb, x, axis)


def require_some(verb: str, axes: tuple[int, ...] | None, x: Any) -> None:
    """Refuse to look for the best one of no values."""
    shape = hosts.of(x).spec(x).shape
    if shape is None:
        return
    if 0 in (shape if axes is None else [shape[axis] for axis in axes]):
        raise OptionError.about(
            verb,
            found=f"no value along the axis: x has shape {show_shape(shape)}",
            expected="at least one value",
            fix="another axis",
        )


def only(xp: Any, where: Any, value: Any, like: Any) -> Any:
    """Give what is chosen where it is, and NaN elsewhere, where nothing is."""
    return xp.where(where, value, math.nan + 0 * like)


def stepped(x: Any, steps: Any, at_step: float) -> Any:
    """Give the slope of a function of steps: 0 between them, NaN at a NaN."""
    xp = namespace(x)
    return xp.where(steps, at_step, xp.where(x != x, x, 0 * xp.ones_like(x)))


def kept(y: Any, axes: tuple[int, ...] | None, x: Any) -> Any:
    """Give a reduced tensor its axes back, with length one."""
    if axes is None:
        return y  # a scalar
    return spread(y, tuple(sorted(a % len(x.shape) for a in axes)))


def shares(xp: Any, x: Any, best: Any, axes: tuple[int, ...] | None, ties: str) -> Any:
    """Divide 1 among the entries that are the best along the axes: evenly, or all of it to the first."""
    met = x == best
    if ties == "first":
        met = met & (_order(xp, met, axes) == 1)
    share = xp.astype(met, x.dtype)
    return share / xp.sum(share, axis=axes, keepdims=True)


def shared(dy: Any, x: Any, best: Any, axes: tuple[int, ...] | None, keepdims: bool, ties: str) -> Any:
    """Pull a cotangent of the best entry along axes back to those that are it."""
    return (dy if keepdims else kept(dy, axes, x)) * shares(namespace(x), x, best, axes, ties)


def tied(x: Any, best: Any, axes: tuple[int, ...] | None, ties: str) -> Any:
    """Give the shares of the entries of a tie; elsewhere nothing is chosen."""
    xp = namespace(x)
    several = xp.sum(xp.astype(x == best, x.dtype), axis=axes, keepdims=True) > 1
    return only(xp, several & (x == best), shares(xp, x, best, axes, ties), x)


def preferred(xp: Any, v: Any, w: Any, first: Any, second: Any, tie: float) -> tuple[Any, Any]:
    """Give the slopes of the one of two values that is preferred, `tie` of the first where they are equal."""
    lost = xp.where((v != v) | (w != w), math.nan, 0 * xp.ones_like(v + w))
    return (
        xp.where(first, 1.0, xp.where(v == w, tie, lost)),
        xp.where(second, 1.0, xp.where(v == w, 1 - tie, lost)),
    )


def equal(xp: Any, v: Any, w: Any, tie: float) -> tuple[Any, Any]:
    """Give the slopes of two values that are equal; elsewhere nothing is chosen."""
    return only(xp, v == w, tie, v + w), only(xp, v == w, 1 - tie, v + w)


def _order(xp: Any, met: Any, axes: tuple[int, ...] | None) -> Any:
    """Count the entries that are met, along one axis."""
    (axis,) = axes or (0,)
    return xp.cumulative_sum(xp.astype(met, xp.int32), axis=axis)


def require_ties(verb: str, ties: Any, axes: tuple[int, ...] | None, x: Any) -> None:
    """Refuse another word, and a first one of several axes, along which there is none."""
    require_word(verb, "ties", ties, TIES)
    count = len(hosts.of(x).spec(x).shape or ()) if axes is None else len(axes)
    if ties == "first" and count != 1:
        raise OptionError.about(
            verb,
            found=f"ties='first' along {count} axes",
            expected="one axis, along which one entry comes first",
            fix="axis=-1",
        )
