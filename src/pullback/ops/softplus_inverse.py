"""softplus_inverse: log(eˣ − 1), the value whose softplus is x > 0.

    log(eˣ − 1) = x + log(1 − e⁻ˣ), the latter by the series of `log1mexp` below log 2
    its slope is 1 / (1 − e⁻ˣ) = 1 + 1 / (eˣ − 1)

Domain: x ≥ 0. Edges: −∞ at 0 with slope ∞, ∞ at ∞ with slope 1; below 0 value and slope are NaN: softplus has
no such value. Near its zero, x = log 2, the value is right to rounding of log 2, as e^x − 1 is of 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.log1mexp import near, rest, slope_of_rest
from pullback.ops.precision import narrow, reals
from pullback.typed import T


def _slope(x: Any) -> Any:
    xp, w = reals("softplus_inverse", x)
    small, t = near(xp, w)
    s = 1 / xp.where(small, w, 1 - xp.exp(-w))
    return xp.where(w < 0, math.nan, s + xp.where(small, slope_of_rest(t) + 0.5, 0.0))


@example(np.array([0.5, 1.3, 2.1]), domain=(0.0, math.inf))
@elementwise(partials=_slope)
def softplus_inverse(x: T) -> T:
    """Give log(eˣ − 1): what a parameter must be for its softplus to be x.

    Args:
        x: Values that are not negative.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.softplus(pb.ops.softplus_inverse(np.array([1e-3, 1.0, 900.0]))).round(12).tolist()
        [0.001, 1.0, 900.0]

    Do not use it for values that may be zero: no finite parameter has a softplus of 0.
    """
    xp, w = reals("softplus_inverse", x)
    small, t = near(xp, w)
    y = xp.log(xp.where(small, w, 1 - xp.exp(-w))) + xp.where(small, t / 2 + rest(t), w)
    return narrow(y, x)  # type: ignore[no-any-return]
