"""sinc: sin(πx) / (πx), and 1 at x = 0, as NumPy has it.

With r = x − ⌊x⌉ (exact) and n = ⌊x⌉:   sin(πx) = (−1)ⁿ·sin(πr),   cos(πx) = (−1)ⁿ·sin(π(½ − |r|))
    sinc′(x) = (cos(πx) − sinc(x)) / x,                                       for |x| > ½
    sinc′(x) = −π²x · Σ (−1)ᵏ (2k + 2) (πx)²ᵏ / (2k + 3)!                      around 0, where that cancels

πx itself would be rounded: at x = 10⁶ its sine has no digits left.
Domain: every x. Edges: 1 at 0 with slope 0; 0 at ±∞ with slope 0; NaN stays NaN. Where the slope itself is
zero, its error is that of its terms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, polynomial, reals
from pullback.typed import T

_TERMS = 11  # |πx| ≤ π/2: the next one is below the last digit of float64
_SLOPE = [(-1) ** k * (2 * k + 2) / math.factorial(2 * k + 3) for k in range(_TERMS)]


def _turned(xp: Any, w: Any) -> tuple[Any, Any, Any]:
    """Give sin(πx), cos(πx), and x itself with infinities cut, at which there is no angle."""
    x = xp.where(xp.isinf(w), 0.5, w)
    n = xp.round(x)
    r = x - n
    sign = 1 - 2 * xp.abs(n - 2 * xp.floor(n / 2))
    return sign * xp.sin(math.pi * r), sign * xp.sin(math.pi * (0.5 - xp.abs(r))), x


def _slope(x: Any) -> Any:
    xp, w = reals("sinc", x)
    near = xp.abs(w) <= 0.5
    square = xp.where(near, math.pi * w, 0.0) * xp.where(near, math.pi * w, 0.0)
    sine, cosine, _ = _turned(xp, xp.where(near, 1.0, w))
    far = xp.where(near, 1.0, w)
    return xp.where(
        near,
        -math.pi * (math.pi * w) * polynomial(_SLOPE, square, single=8),
        (cosine - sine / (math.pi * far)) / far,
    )


@example(np.array([0.2, -1.3, 2.1]))
@elementwise(partials=_slope)
def sinc(x: T) -> T:
    """Give sin(πx) / (πx), and 1 at 0, with all digits far from 0, too.

    Args:
        x: Any real values.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.sinc(np.array([0.0, 0.5, 1e6 + 0.5])).round(10).tolist()
        [1.0, 0.6366197724, 3.183e-07]

    Do not use it for sin(x) / x: give it x / π.
    """
    xp, w = reals("sinc", x)
    sine, _, far = _turned(xp, w)
    zero = w == 0
    y = xp.where(zero, 1.0, sine / (math.pi * xp.where(zero, 1.0, far)))
    return narrow(xp.where(xp.isinf(w), 0.0, y), x)  # type: ignore[no-any-return]
