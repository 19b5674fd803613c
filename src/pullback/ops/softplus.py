"""softplus: log(1 + eˣ), which overflows nowhere.

    softplus(x) = max(x, 0) + log(1 + e^−|x|)
    softplus′(x) = σ(x)

Domain: every x. Edges: softplus(−∞) = 0 with slope 0, softplus(∞) = ∞ with slope 1; NaN stays NaN.
Autodiff of log(1 + eˣ) divides ∞ by ∞ from x = 89 on in float32.
After M. Mächler, Accurately computing log(1 − exp(−|a|)), 2012.
"""

from __future__ import annotations

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import log1p_below, narrow, reals
from pullback.ops.sigmoid import sigmoid
from pullback.typed import T


@example(np.array([0.7, -1.3, 2.1]))
@elementwise(partials=sigmoid)
def softplus(x: T) -> T:
    """Give log(1 + eˣ), with the slope σ(x).

    Args:
        x: Any real values.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.softplus(np.array([-800.0, 0.0, 800.0])).round(3).tolist()
        [0.0, 0.693, 800.0]

    Do not use it for large positive values alone: there it is x itself.
    """
    xp, w = reals("softplus", x)
    y = xp.where(w < 0, 0.0, w) + log1p_below(xp, xp.exp(-xp.abs(w)))
    return narrow(y, x)  # type: ignore[no-any-return]


log1pexp = softplus  # the name that says what is computed
