"""safe_arccos: arccos(x) for |x| ≤ 1, and its values at ±1 beyond, with a finite slope everywhere.

    its slope is −1 / √((1 − x)·(1 + x)) for |x| < 1, and 0 elsewhere

1 − x² would lose the digits of 1 − |x| near the ends.
Domain: every x. Edges: beyond ±1 the function is constant, so 0 is its derivative. At ±1 the slope is
infinite from the inside and 0 from the outside: the latter stands, which is declared. NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow
from pullback.ops.safe_arcsin import at_ends, cut, steepness
from pullback.typed import T


def _slope(x: Any) -> Any:
    xp, outside, slope = steepness(x)
    return xp.where(outside, 0.0, -slope)


@example(np.array([0.7, -0.3, 0.1]))
@elementwise(partials=_slope, chosen=at_ends)
def safe_arccos(x: T) -> T:
    """Give arccos(x), with x cut to −1 … 1 and the slope 0 at the ends.

    Args:
        x: Any real values; those beyond ±1 count as ±1, as rounding makes them.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.safe_arccos(np.array([-1.1, 0.0, 1.0])).round(3).tolist()
        [3.142, 1.571, 0.0]

    Do not use it for the angle of two vectors if it may be small: atan2 of cross and dot has its digits.
    """
    xp, inside = cut(x)
    return narrow(xp.acos(inside), x)  # type: ignore[no-any-return]
