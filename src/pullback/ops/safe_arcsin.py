"""safe_arcsin: arcsin(x) for |x| ≤ 1, and its values at ±1 beyond, with a finite slope everywhere.

    its slope is 1 / √((1 − x)·(1 + x)) for |x| < 1, and 0 elsewhere

1 − x² would lose the digits of 1 − |x| near the ends.
Domain: every x. Edges: beyond ±1 the function is constant, so 0 is its derivative. At ±1 the slope is
infinite from the inside and 0 from the outside: the latter stands, which is declared. NaN stays NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, reals
from pullback.typed import T


def steepness(x: Any) -> tuple[Any, Any, Any]:
    """Give the namespace, where x is at an end or beyond it, and the slope of arcsin elsewhere."""
    xp, w = reals("safe_arcsin", x)
    outside = xp.abs(w) >= 1
    inside = xp.where(outside, 0.0, w)
    return xp, outside, 1 / xp.sqrt((1 - inside) * (1 + inside))


def cut(x: Any) -> tuple[Any, Any]:
    """Give the namespace, and x cut to −1 … 1."""
    xp, w = reals("safe_arcsin", x)
    return xp, xp.where(w < -1, -1.0, xp.where(w > 1, 1.0, w))


def _slope(x: Any) -> Any:
    xp, outside, slope = steepness(x)
    return xp.where(outside, 0.0, slope)


def at_ends(x: Any) -> Any:
    """0 at x = ±1."""
    xp, w = reals("safe_arcsin", x)
    return xp.where(xp.abs(w) == 1, 0.0, math.nan)


@example(np.array([0.7, -0.3, 0.1]))
@elementwise(partials=_slope, chosen=at_ends)
def safe_arcsin(x: T) -> T:
    """Give arcsin(x), with x cut to −1 … 1 and the slope 0 at the ends.

    Args:
        x: Any real values; those beyond ±1 count as ±1, as rounding makes them.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.safe_arcsin(np.array([-1.1, 0.0, 1.0])).round(3).tolist()
        [-1.571, 0.0, 1.571]

    Do not use it for the angle of two vectors if it may be small: atan2 of cross and dot has its digits.
    """
    xp, inside = cut(x)
    return narrow(xp.asin(inside), x)  # type: ignore[no-any-return]
