"""logit: log(p / (1 − p)), the inverse of the sigmoid.

    logit(p) = log(p / (1 − p)),   2·artanh(2p − 1) by its series for |2p − 1| < ⅓
    logit′(p) = 1 / (p·(1 − p))

2p − 1 is exact there, so nothing is lost around the zero at ½.
Domain: 0 ≤ p ≤ 1. Edges: −∞ at 0 and ∞ at 1, both with slope ∞; outside value and slope are NaN: there is no
such logarithm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.log1p import ARTANH
from pullback.ops.precision import narrow, polynomial, reals
from pullback.typed import T


def _slope(p: Any) -> Any:
    xp, w = reals("logit", p)
    return xp.where((w < 0) | (w > 1), math.nan, 1 / (w * (1 - w)))


@example(np.array([0.2, 0.5, 0.9]), domain=(0.0, 1.0))
@elementwise(partials=_slope)
def logit(p: T) -> T:
    """Give log(p / (1 − p)), with all digits near ½, too.

    Args:
        p: Probabilities.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.logit(np.array([1e-20, 0.25, 0.5])).round(3).tolist()
        [-46.052, -1.099, 0.0]

    Do not use it on the output of a sigmoid: keep the logits.
    """
    xp, w = reals("logit", p)
    s = 2 * w - 1
    middle = xp.abs(s) < 1 / 3
    s = xp.where(middle, s, 0.0)
    y = xp.where(middle, s * polynomial(ARTANH, s * s, single=8), xp.log(w / (1 - w)))
    return narrow(y, p)  # type: ignore[no-any-return]
