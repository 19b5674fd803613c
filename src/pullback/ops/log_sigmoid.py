"""log_sigmoid: log σ(x) = −softplus(−x).

    log σ(x) = min(x, 0) − log(1 + e^−|x|)
    its slope is 1 − σ(x) = σ(−x), computed as such: 1 − σ(x) rounds to 0 for large x

Domain: every x. Edges: −∞ at −∞ with slope 1, 0 at ∞ with slope 0; NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import log1p_below, narrow, reals
from pullback.typed import T


def _bend(x: Any) -> Any:
    xp, w = reals("log_sigmoid", x)
    e = xp.exp(-xp.abs(w))
    return -e / ((1 + e) * (1 + e))


@elementwise(partials=_bend)
def _slope(x: Any) -> Any:
    """Give σ(−x) of the e that the value has computed: |x| has no slope at 0, and this one has."""
    xp, w = reals("log_sigmoid", x)
    e = xp.exp(-xp.abs(w))
    return narrow(xp.where(w < 0, 1.0, e) / (1 + e), x)


@example(np.array([0.7, -1.3, 2.1]))
@elementwise(partials=_slope)
def log_sigmoid(x: T) -> T:
    """Give log σ(x), with the slope σ(−x).

    Args:
        x: Any real values.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.log_sigmoid(np.array([-800.0, 0.0, 8.0])).round(6).tolist()
        [-800.0, -0.693147, -0.000335]

    Do not use it where the probability itself is needed, too: `pb.ops.sigmoid` gives that.
    """
    xp, w = reals("log_sigmoid", x)
    y = xp.where(w > 0, 0.0, w) - log1p_below(xp, xp.exp(-xp.abs(w)))
    return narrow(y, x)  # type: ignore[no-any-return]
