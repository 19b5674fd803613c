"""safe_power: xᵖ for x > 0, and 0 elsewhere (1 where p = 0), with finite slopes there.

    ∂/∂x = p·xᵖ / x,   ∂/∂p = xᵖ·log x,   and 0 for x ≤ 0

p − 1 would be rounded. Where xᵖ or a slope may over- or underflow before the others do, which log x tells,
xᵖ is x^(p/2) · x^(p/2), and a slope multiplies the two last. Value and slopes have one power in common.
Domain: every x and p. Edges: for x < 0 the function is constant, so 0 is its derivative. At x = 0 the slope
from the right is p·0^(p − 1), which is ∞ for 0 < p < 1, and 0 from the left: the left one stands, which is
declared. For p < 0 the value 0 at x = 0 is a choice, as in `safe_divide`. At ∞ limits stand. NaN stays NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, reals
from pullback.typed import T


def _parts(x: Any, p: Any) -> Any:
    """Give the namespace, where x is outside, x and p, log x, and two factors of xᵖ that lose no digits."""
    xp, v, w = reals("safe_power", x, p)
    outside = (v <= 0) & (w == w)
    base = xp.where(outside, 1.0, v)
    log, kind = xp.log(base), xp.finfo(base.dtype)
    fits = xp.abs(log) * (1 + xp.abs(w)) < math.log(float(kind.eps) / float(kind.smallest_normal))
    power = xp.pow(base, xp.where(fits, w, w / 2))
    return xp, outside, base, w, log, power, xp.where(fits, 1.0, power)


def _slopes(x: Any, p: Any) -> tuple[Any, Any]:
    xp, outside, base, w, log, power, rest = _parts(x, p)
    none = outside | (power == 0)
    at_infinity = xp.where(w > 1, base, xp.astype(w == 1, base.dtype))
    by_x = xp.where(base == math.inf, at_infinity, (power / base) * (w * rest))
    return xp.where(none, 0.0, by_x), xp.where(none, 0.0, (power * log) * rest)


def _chosen(x: Any, p: Any) -> Any:
    """0 at x = 0."""
    xp, v, w = reals("safe_power", x, p)
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
    xp, outside, _, w, _, power, rest = _parts(x, p)
    return narrow(xp.where(outside, xp.astype(w == 0, w.dtype), power * rest), x, p)  # type: ignore[no-any-return]
