"""safe_power: xᵖ for x > 0, and 0 elsewhere (1 where p = 0), with finite slopes there.

    ∂/∂x = p·xᵖ / x,   ∂/∂p = xᵖ·log x,   and 0 for x ≤ 0

p − 1 would be rounded. Where xᵖ over- or underflows before the slope does, it is x^(p/2) / x · x^(p/2).
Domain: every x and p. Edges: for x < 0 the function is constant, so 0 is its derivative. At x = 0 the slope
from the right is p·0^(p − 1), which is ∞ for 0 < p < 1, and 0 from the left: the left one stands, which is
declared. For p < 0 the value 0 at x = 0 is a choice, as in `safe_divide`. NaN stays NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, wide
from pullback.typed import T


def _slopes(x: Any, p: Any) -> tuple[Any, Any]:
    xp, v, w = wide(x, p)
    outside = (v <= 0) & (w == w)
    base = xp.where(outside, 1.0, v)
    y = xp.pow(base, w)
    least = float(xp.finfo(base.dtype).smallest_normal) * 2**24
    plain = xp.isfinite(y) & (y > least)  # with all its digits
    half = xp.pow(base, w / 2)
    whole, half = xp.where(plain, y, half), xp.where(plain, 1.0, half)
    by_x, by_p = w * (whole / base) * half, whole * xp.log(base) * half
    return xp.where(outside, 0.0, by_x), xp.where(outside, 0.0, by_p)


def _chosen(x: Any, p: Any) -> Any:
    """0 at x = 0."""
    xp, v, w = wide(x, p)
    chosen = xp.where((v == 0) & (w == w), 0.0, math.nan)
    return chosen, chosen


@example(np.array([0.7, 1.3, 2.1]), np.array([0.5, -1.1, 2.9]))
@elementwise(partials=_slopes, chosen=_chosen)
def safe_power(x: T, p: T) -> T:
    """Give xᵖ, and 0 with slopes 0 where x is not positive.

    Args:
        x: The base; values below 0 count as 0.
        p: The exponent: a number, or a tensor of a shape that broadcasts with that of `x`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.safe_power(np.array([-1.0, 0.0, 4.0]), np.array(0.5)).tolist()
        [0.0, 0.0, 2.0]

    Do not use it for whole powers of negative numbers: x * x knows their sign.
    """
    xp, v, w = wide(x, p)
    outside = (v <= 0) & (w == w)
    inside = xp.pow(xp.where(outside, 1.0, v), w)
    return narrow(xp.where(outside, xp.where(w == 0, 1.0, 0 * w), inside), x, p)  # type: ignore[no-any-return]
