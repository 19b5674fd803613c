"""safe_divide: a / b, and 0 where b = 0, with finite slopes there.

    ∂/∂a = 1 / b,   ∂/∂b = −a / b² = −(a / b)·(1 / b),   and 0 where b = 0

XLA makes a / b² of (a / b) / b, and b² underflows.

Domain: every a, b. Edges: at b = 0 the value 0 is a choice: a / b has no limit there. It is 0 for every a, so
∂/∂a = 0 is its derivative; ∂/∂b does not exist, and 0 stands for it, which is declared. NaN stays NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, reals
from pullback.typed import T


def _slopes(a: Any, b: Any) -> tuple[Any, Any]:
    xp, v, w = reals("safe_divide", a, b)
    zero = w == 0
    divisor = xp.where(zero, 1.0, w)
    inverse = 1 / divisor
    return xp.where(zero, 0.0, inverse), xp.where(zero, 0.0, -(v / divisor) * inverse)


def _chosen(a: Any, b: Any) -> Any:
    """0 at b = 0."""
    xp, v, w = reals("safe_divide", a, b)
    chosen = xp.where((w == 0) & (v == v), 0.0, math.nan)
    return chosen, chosen


@example(np.array([0.7, -1.3, 2.1]), np.array([0.2, 1.1, -2.9]))
@elementwise(partials=_slopes, chosen=_chosen)
def safe_divide(a: T, b: T) -> T:
    """Give a / b, and 0 with slopes 0 where b is 0.

    Args:
        a: The dividend.
        b: The divisor, of a shape that broadcasts with that of `a`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.safe_divide(np.array([1.0, 1.0]), np.array([0.0, 4.0])).tolist()
        [0.0, 0.25]

    Do not use it where b comes near 0 without being 0: nothing is safe about 1 / 1e-30.
    """
    xp, v, w = reals("safe_divide", a, b)
    zero = w == 0
    return narrow(xp.where(zero & (v == v), 0.0, v / xp.where(zero, 1.0, w)), a, b)  # type: ignore[no-any-return]
