"""logaddexp: log(eᵃ + eᵇ), which overflows nowhere.

    log(eᵃ + eᵇ) = max(a, b) + log(1 + e^−|a − b|)
    ∂/∂a = σ(a − b),   ∂/∂b = σ(b − a)

a − b is rounded, and e^(a − b) would carry |a − b| times that error: σ is given the part that was rounded
off.
Domain: every a, b. Edges: two equal infinities give that infinity, and each has the slope ½, as two equal
numbers have; NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import difference, narrow, reals
from pullback.typed import T


def _apart(xp: Any, d: Any, rest: Any) -> Any:
    """Give e^−|d + rest|; |d| itself has no slope at 0."""
    sign = xp.where(d < 0, xp.ones_like(d), -1.0)
    return xp.exp(sign * d) * (1 + sign * rest)


def _slopes(a: Any, b: Any) -> tuple[Any, Any]:
    xp, v, w = reals("logaddexp", a, b)
    d, rest = difference(xp, v, w)
    e = _apart(xp, d, rest)
    high = 1 / (1 + e)
    low = e * high
    return xp.where(d < 0, low, high), xp.where(d < 0, high, low)


@example(np.array([0.7, -1.3, 2.1]), np.array([0.2, 1.1, 2.9]))
@elementwise(partials=_slopes)
def logaddexp(a: T, b: T) -> T:
    """Give log(eᵃ + eᵇ), the sum of two numbers that are known by their logarithms.

    Args:
        a: The one logarithm.
        b: The other one, of a shape that broadcasts with that of `a`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.logaddexp(np.array([1000.0]), np.array([1000.0])).round(3).tolist()
        [1000.693]

    Do not use it in a loop over many: a logsumexp takes them all at once.
    """
    xp, v, w = reals("logaddexp", a, b)
    d, rest = difference(xp, v, w)
    y = xp.where(v < w, w, v) + xp.log1p(_apart(xp, d, rest))
    return narrow(y, a, b)  # type: ignore[no-any-return]
