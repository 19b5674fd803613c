"""log_cosh: log(cosh(x)), without an overflow and with all digits around 0.

With c = cosh(x) − 1 = Σ x²ᵏ / (2k)! and s = sinh(x) / x = Σ x²ᵏ / (2k + 1)!, and e = e^−2|x|:
    log cosh(x) = log1p(c),                  its slope tanh(x) = x·s / (1 + c)            for |x| < 1.5
    log cosh(x) = |x| − log 2 + log1p(e),    its slope tanh(x) = ±(1 − e) / (1 + e)       beyond

tanh of TensorFlow and JAX is off by up to 7 units of the last place.

Domain: every x. Edges: ∞ at ±∞ with slope ±1; NaN stays NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, polynomial, reals
from pullback.typed import T

_TERMS = 11  # |x| < 1.5: the next one is below the last digit of float64
_COSH = [1 / math.factorial(2 * k + 2) for k in range(_TERMS)]
_SINH = [1 / math.factorial(2 * k + 1) for k in range(_TERMS)]


def _slope(x: Any) -> Any:
    xp, w = reals("log_cosh", x)
    near = xp.abs(w) < 1.5
    t = xp.where(near, w, 0.0)
    e = xp.exp(-2 * xp.where(near, 1.5, xp.abs(w)))
    by_sums = t * polynomial(_SINH, t * t, single=8) / (1 + t * t * polynomial(_COSH, t * t, single=8))
    return xp.where(near, by_sums, xp.where(w < 0, e - 1, 1 - e) / (1 + e))


@example(np.array([0.7, -1.3, 2.1]))
@elementwise(partials=_slope)
def log_cosh(x: T) -> T:
    """Give log(cosh(x)): a parabola around 0, and |x| − log 2 far from it.

    Args:
        x: Any real values.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.log_cosh(np.array([0.0, 1.0, 1000.0])).round(3).tolist()
        [0.0, 0.434, 999.307]

    Do not use it where the parabola must end at a chosen place: `pb.ops.huber` says where.
    """
    xp, w = reals("log_cosh", x)
    size = xp.abs(w)
    near = size < 1.5
    t = xp.where(near, w, 0.0)
    e = xp.exp(-2 * xp.where(near, 1.5, size))
    y = xp.log1p(xp.where(near, t * t * polynomial(_COSH, t * t, single=8), e))
    return narrow(y + xp.where(near, 0.0, size - math.log(2)), x)  # type: ignore[no-any-return]
