"""log1mexp: log(1 − e⁻ˣ) for x > 0.

    log(1 − e⁻ˣ) = log(−expm1(−x)) for x < log 2,   log1p(−e⁻ˣ) above, by the series of `log1p`
    its slope is e⁻ˣ / (1 − e⁻ˣ) = e⁻ˣ / −expm1(−x)    (as 1 / expm1(x) it would overflow first)

Domain: x ≥ 0. Edges: −∞ at 0 with slope ∞, 0 at ∞ with slope 0; below 0 value and slope are NaN: there is no
such logarithm. After M. Mächler, Accurately computing log(1 − exp(−|a|)), 2012.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.log1p import ARTANH
from pullback.ops.precision import narrow, polynomial, wide
from pullback.typed import T


def _slope(x: Any) -> Any:
    xp, w = wide(x)
    s = xp.exp(-w) / -xp.expm1(-w)
    return xp.where(w < 0, math.nan, s)


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
    xp, w = wide(x)
    near = w < math.log(2)
    e = xp.exp(-w)
    s = xp.where(near, 0.0, -e / (2 - e))
    y = xp.where(near, xp.log(-xp.expm1(-w)), s * polynomial(ARTANH, s * s, single=8))
    return narrow(y, x)  # type: ignore[no-any-return]
