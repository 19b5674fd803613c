"""log1p: log(1 + x), right to the last digits on every host.

With s = x / (2 + x):   log(1 + x) = 2·artanh(s) = 2s·Σ s²ᵏ / (2k + 1)      for |x| < ½
    log(1 + x) as it stands beyond, where 1 + x loses nothing that counts
    its slope is 1 / (1 + x)

JAX's own is off by a hundred units of the last place in float64, around x = −0.4.
Domain: x ≥ −1. Edges: −∞ at −1 with slope ∞, ∞ at ∞ with slope 0; below −1 value and slope are NaN: there is
no such logarithm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, polynomial, reals
from pullback.typed import T

_TERMS = 17  # of 2·artanh(s) / s, s² ≤ 1/9: the next one is below the last digit of float64
ARTANH = [2 / (2 * k + 1) for k in range(_TERMS)]


def _slope(x: Any) -> Any:
    xp, w = reals("log1p", x)
    return xp.where(w < -1, math.nan, 1 / (1 + w))


@example(np.array([0.7, -0.3, 2.1]), domain=(-1.0, math.inf))
@elementwise(partials=_slope)
def log1p(x: T) -> T:
    """Give log(1 + x), with all digits around 0.

    Args:
        x: Values that are not below −1.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.log1p(np.array([1e-20, 0.0, 1.0])).tolist()
        [1e-20, 0.0, 0.6931471805599453]

    Do not use it on PyTorch for speed: its own is as accurate.
    """
    xp, w = reals("log1p", x)
    near = xp.abs(w) < 0.5
    t = xp.where(near, w, 0.0)
    s = t / (2 + t)
    y = xp.where(near, s * polynomial(ARTANH, s * s, single=8), xp.log(1 + xp.where(near, 1.0, w)))
    return narrow(y, x)  # type: ignore[no-any-return]
