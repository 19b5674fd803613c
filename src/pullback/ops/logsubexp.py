"""logsubexp: log(eᵃ − eᵇ) for a > b.

    log(eᵃ − eᵇ) = a + log(1 − e^−d),   d = a − b
    ∂/∂a = 1 / (1 − e^−d),   ∂/∂b = −e^−d / (1 − e^−d)

d is rounded, and e^−d would carry d times that error: it is given the part that was rounded off.
Domain: a ≥ b. Edges: a = b gives −∞ with the slopes ∞ and −∞; b = −∞ gives a with the slopes 1 and 0; for
a < b value and slopes are NaN: there is no such logarithm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.log1mexp import log1mexp
from pullback.ops.precision import difference, narrow, reals
from pullback.typed import T


def _slopes(a: Any, b: Any) -> tuple[Any, Any]:
    xp, v, w = reals("logsubexp", a, b)
    d, rest = difference(xp, v, w)
    left = -xp.expm1(-d)
    e = xp.exp(-d) * (1 - rest)
    outside = d < 0
    return xp.where(outside, math.nan, 1 / left), xp.where(outside, math.nan, -e / left)


def _ordered(a: Any, b: Any) -> Any:
    return a > b


@example(np.array([0.7, 1.3, 2.9]), np.array([0.2, -1.1, 2.1]), domain=_ordered)
@elementwise(partials=_slopes)
def logsubexp(a: T, b: T) -> T:
    """Give log(eᵃ − eᵇ), the difference of two numbers that are known by their logarithms.

    Args:
        a: The greater logarithm.
        b: The lesser one, of a shape that broadcasts with that of `a`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.logsubexp(np.array([1000.0]), np.array([999.0])).round(3).tolist()
        [999.541]

    Do not use it where either may be the greater: the logarithm of a negative number is NaN.
    """
    xp, v, w = reals("logsubexp", a, b)
    d, _ = difference(xp, v, w)
    return narrow(v + log1mexp(d), a, b)  # type: ignore[no-any-return]
