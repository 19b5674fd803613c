"""safe_sqrt: √x for x > 0, and 0 elsewhere, with a finite slope everywhere.

    its slope is ½ / √x for x > 0, and 0 for x ≤ 0

Domain: every x. Edges: below 0 the function is constant, so 0 is its derivative. At 0 the slope is ∞ from the
right and 0 from the left: the left one stands, which is declared. So √0 stops a gradient, as √(x + ε) nearly
does, without changing the value elsewhere. ∞ at ∞ with slope 0; NaN stays NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, reals
from pullback.typed import T


def _slope(x: Any) -> Any:
    xp, w = reals("safe_sqrt", x)
    return xp.where(w <= 0, 0.0, 0.5 / xp.sqrt(xp.where(w <= 0, 1.0, w)))


def _chosen(x: Any) -> Any:
    """0 at x = 0."""
    xp, w = reals("safe_sqrt", x)
    return xp.where(w == 0, 0.0, math.nan)


@example(np.array([0.7, 1.3, 2.1]))
@elementwise(partials=_slope, chosen=_chosen)
def safe_sqrt(x: T) -> T:
    """Give √x, and 0 with slope 0 where x is not positive.

    Args:
        x: Any real values; those below 0 count as 0, as rounding makes them.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.safe_sqrt(np.array([-1e-9, 0.0, 4.0])).tolist()
        [0.0, 0.0, 2.0]

    Do not use it where a negative value is a mistake: it hides it.
    """
    xp, w = reals("safe_sqrt", x)
    return narrow(xp.sqrt(xp.where(w <= 0, 0.0, w)), x)  # type: ignore[no-any-return]
