"""xlog1py: x·log(1 + y), and 0 where x = 0.

    ∂/∂x = log(1 + y),   ∂/∂y = x / (1 + y), and 0 where x = 0 and y = −1

Domain: y ≥ −1. Edges: at x = 0 the value is 0 for every y, so ∂/∂y is 0; ∂/∂x is log(1 + y) there as
elsewhere, which is −∞ at y = −1: so is the true one. For y < −1 all are NaN but the value at x = 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.log1p import log1p
from pullback.ops.precision import narrow, reals
from pullback.typed import T


def _slopes(x: Any, y: Any) -> tuple[Any, Any]:
    xp, v, w = reals("xlog1py", x, y)
    base, nothing = _base(xp, v, w)
    return xp.where(nothing, -math.inf, log1p(base)), xp.where(w < -1, math.nan, v / (1 + base))


def _base(xp: Any, v: Any, w: Any) -> tuple[Any, Any]:
    """Give y with 0 where x = 0 and y = −1, and tell where that is."""
    nothing = (v == 0) & (w == -1)
    return xp.where(nothing, 0.0, w), nothing


@example(np.array([0.7, -1.3, 2.1]), np.array([-0.2, 1.1, 2.9]), domain={"y": (-1.0, math.inf)})
@elementwise(partials=_slopes)
def xlog1py(x: T, y: T) -> T:
    """Give x·log(1 + y), and 0 where x is 0, whatever y is.

    Args:
        x: The factor.
        y: What is added to 1 in the logarithm; of a shape that broadcasts with that of `x`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.xlog1py(np.array([0.0, 2.0]), np.array([-1.0, 1e-20])).tolist()
        [0.0, 2e-20]

    Do not use it where y is far from 0: `pb.ops.xlogy` of 1 + y is the same there.
    """
    xp, v, w = reals("xlog1py", x, y)
    base, _ = _base(xp, v, w)
    return narrow(xp.where((v == 0) & (w == w), 0.0, v * log1p(base)), x, y)  # type: ignore[no-any-return]
