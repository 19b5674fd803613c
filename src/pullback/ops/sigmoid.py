"""sigmoid: σ(x) = 1 / (1 + e⁻ˣ), without an overflow on either side.

    with e = e^−|x| ≤ 1:   σ(x) = 1 / (1 + e) for x ≥ 0,   e / (1 + e) for x < 0
    σ′(x) = e / (1 + e)²    (as σ·(1 − σ) it would lose all digits for large x, where 1 − σ rounds to 0)

Domain: every x. Edges: σ(−∞) = 0, σ(∞) = 1, both with slope 0; NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, reals
from pullback.typed import T


def _slope(x: Any) -> Any:
    xp, w = reals("sigmoid", x)
    e = xp.exp(-xp.abs(w))
    return e / ((1 + e) * (1 + e))


@example(np.array([0.7, -1.3, 2.1]))
@elementwise(partials=_slope)
def sigmoid(x: T) -> T:
    """Give 1 / (1 + e⁻ˣ), with a slope that is right to the last digits on both sides.

    Args:
        x: Any real values.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.sigmoid(np.array([-800.0, 0.0, 800.0])).tolist()
        [0.0, 0.5, 1.0]

    Do not use it before a cross-entropy: one from logits is more accurate.
    """
    xp, w = reals("sigmoid", x)
    e = xp.exp(-xp.abs(w))
    return narrow(xp.where(w < 0, e, 1.0) / (1 + e), x)  # type: ignore[no-any-return]
