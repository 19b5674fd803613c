"""huber: a parabola around 0 and straight lines from ±δ on.

    huber(x) = ½x² for |x| ≤ δ,   δ·(|x| − ½δ) beyond
    huber′(x) = x cut to −δ … δ

Domain: every x; δ > 0. Edges: ∞ at ±∞ with slope ±δ; NaN stays NaN. At ±δ the slope is continuous.
After P. J. Huber, Robust estimation of a location parameter, 1964.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, reals
from pullback.options import require_number
from pullback.typed import T


def _slope(x: Any, *, delta: float = 1.0) -> Any:
    xp, w = reals("huber", x)
    return xp.where(w > delta, delta, xp.where(w < -delta, -delta, w))


@example(np.array([0.7, -1.3, 2.1]))
@elementwise(partials=_slope)
def huber(x: T, *, delta: float = 1.0) -> T:
    """Give ½x² where |x| ≤ delta, and delta·(|x| − ½·delta) beyond.

    Args:
        x: The residuals.
        delta: Where the parabola ends, a positive number.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.huber(np.array([0.5, -3.0])).tolist()
        [0.125, 2.5]

    Do not use it where a second derivative must exist everywhere: `pb.ops.log_cosh` is smooth.
    """
    require_number("huber", "delta", delta, least=0, above=True, fix="delta=1.0")
    xp, w = reals("huber", x)
    size = xp.abs(w)
    inner = xp.where(size <= delta, w, 0.0)
    return narrow(xp.where(size <= delta, 0.5 * inner * inner, delta * (size - 0.5 * delta)), x)  # type: ignore[no-any-return]
