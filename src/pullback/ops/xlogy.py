"""xlogy: x·log(y), and 0 where x = 0.

    ∂/∂x = log y,   ∂/∂y = x / y, and 0 where x = y = 0

The limit of x·log x at 0 is 0; a product would give 0·(−∞).
Domain: y ≥ 0. Edges: at x = 0 the value is 0 for every y, so ∂/∂y is 0; ∂/∂x is log y there as elsewhere,
which is −∞ at y = 0: so is the true one. For y < 0 all are NaN but the value at x = 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, reals
from pullback.typed import T


def _slopes(x: Any, y: Any) -> tuple[Any, Any]:
    xp, v, w = reals("xlogy", x, y)
    base, nothing = _base(xp, v, w)
    return xp.where(nothing, -math.inf, xp.log(base)), xp.where(w < 0, math.nan, v / base)


def _base(xp: Any, v: Any, w: Any) -> tuple[Any, Any]:
    """Give y with 1 where both are 0, and tell where that is."""
    nothing = (v == 0) & (w == 0)
    return xp.where(nothing, 1.0, w), nothing


@example(np.array([0.7, -1.3, 2.1]), np.array([0.2, 1.1, 2.9]), domain={"y": (0.0, math.inf)})
@elementwise(partials=_slopes)
def xlogy(x: T, y: T) -> T:
    """Give x·log(y), and 0 where x is 0, whatever y is.

    Args:
        x: The factor.
        y: What the logarithm is taken of; of a shape that broadcasts with that of `x`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.xlogy(np.array([0.0, 2.0]), np.array([0.0, 3.0])).round(3).tolist()
        [0.0, 2.197]

    Do not use it for an entropy whose gradient is needed at a probability of 0: that is infinite.
    """
    xp, v, w = reals("xlogy", x, y)
    base, _ = _base(xp, v, w)
    return narrow(xp.where((v == 0) & (w == w), 0.0, v * xp.log(base)), x, y)  # type: ignore[no-any-return]
