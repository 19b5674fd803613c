"""log1mexp: log(1 − e⁻ˣ) for x > 0.

    below log 2:   log x − x/2 + Σ B₂ₖ x²ᵏ / (2k·(2k)!),   its slope 1/x − 1/2 + Σ B₂ₖ x²ᵏ⁻¹ / (2k)!
    above:         log u + r·(1 + e⁻ˣ)  with u = 1 − e⁻ˣ rounded, and r what that took;   its slope e⁻ˣ / u

One logarithm and one exponential, as in the formula itself. The slope is 1 / (eˣ − 1), which would overflow
first; B are Bernoulli's numbers, and the series of the slope is that of x / (eˣ − 1).
Domain: x ≥ 0. Edges: −∞ at 0 with slope ∞, 0 at ∞ with slope 0; below 0 value and slope are NaN: there is no
such logarithm. Where the ways part: M. Mächler, Accurately computing log(1 − exp(−|a|)), 2012.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, polynomial, reals
from pullback.typed import T

# B₂ₖ, k ≥ 1: for x < log 2 the next one is below the last digit of float64
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
_SLOPES = [b / math.factorial(2 * k) for k, b in enumerate(_BERNOULLI, 1)]
_VALUES = [c / (2 * k) for k, c in enumerate(_SLOPES, 1)]


def near(xp: Any, x: Any) -> tuple[Any, Any]:
    """Say where the series holds, and give x there, 0 elsewhere."""
    small = x < math.log(2)
    return small, xp.where(small, x, 0.0)


def rest(x: Any) -> Any:
    """Give log((1 − e⁻ˣ) / x) + x/2, for x < log 2."""
    return x * x * polynomial(_VALUES, x * x, single=4)


def slope_of_rest(x: Any) -> Any:
    """Give 1 / (eˣ − 1) − 1/x + 1/2, for x < log 2."""
    return x * polynomial(_SLOPES, x * x, single=4)


def _slope(x: Any) -> Any:
    xp, w = reals("log1mexp", x)
    small, t = near(xp, w)
    e = xp.exp(-w)
    s = xp.where(small, 1.0, e) / xp.where(small, w, 1 - e)
    return xp.where(w < 0, math.nan, s + xp.where(small, slope_of_rest(t) - 0.5, 0.0))


@example(np.array([0.7, 1.3, 2.1]), domain=(0.0, math.inf))
@elementwise(partials=_slope)
def log1mexp(x: T) -> T:
    """Give log(1 − e⁻ˣ), with all digits near 0 and far from it.

    Args:
        x: Values that are not negative.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.log1mexp(np.array([1e-20, 1.0, 20.0])).round(12).tolist()
        [-46.051701859881, -0.458675145387, -2.061e-09]

    Do not use it for log(1 − eˣ) of a negative x without turning its sign.
    """
    xp, w = reals("log1mexp", x)
    small, t = near(xp, w)
    e = xp.exp(-w)
    u = 1 - e
    taken = (1 - u) - e
    y = xp.log(xp.where(small, w, u)) + xp.where(small, rest(t) - t / 2, taken * (1 + e))
    return narrow(y, x)  # type: ignore[no-any-return]
