"""binary_cross_entropy_from_logits: −z·log σ(x) − (1 − z)·log σ(−x).

With e = e^−|x|:   the loss is log1p(e) + |x|·(1 − z for x > 0, z for x < 0): a sum of what is not negative
    ∂/∂x = (1 − z)·σ(x) − z·σ(−x) = ((1 − z) − z·e) / (1 + e) for x ≥ 0,   ((1 − z)·e − z) / (1 + e) for x < 0
    ∂/∂z = −x

As σ(x) − z the slope has no digits left where the model is right, and z = 1.
Domain: every x; 0 ≤ z ≤ 1. Edges: at x = ±∞ the loss is 0 for the label that is met, and ∞ for another one;
NaN stays NaN. For a label between 0 and 1 the slope is zero somewhere: there its error is that of its terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, reals
from pullback.typed import T


def _slopes(logits: Any, labels: Any) -> tuple[Any, Any]:
    xp, x, z = reals("binary_cross_entropy_from_logits", logits, labels)
    negative = x < 0
    e = xp.exp(xp.where(negative, x, -x))  # −|x|, which has no slope at 0
    other = 1 - z
    return xp.where(negative, other * e - z, other - z * e) / (1 + e), -x


@example(np.array([0.7, -1.3, 2.1]), np.array([1.0, 0.0, 0.3]), domain={"labels": (0.0, 1.0)})
@elementwise(partials=_slopes)
def binary_cross_entropy_from_logits(logits: T, labels: T) -> T:
    """Give the cross-entropy of labels and σ(logits), element by element.

    Args:
        logits: Any real values.
        labels: 0, 1, or probabilities; of a shape that broadcasts with that of `logits`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> loss = pb.ops.binary_cross_entropy_from_logits(np.array([0.0, 50.0]), np.array([1.0, 1.0]))
        >>> loss.round(3).tolist()
        [0.693, 0.0]

    Do not use it on probabilities: their logits are gone, and with them the digits.
    """
    xp, x, z = reals("binary_cross_entropy_from_logits", logits, labels)
    size = xp.abs(x)
    missed = xp.where(x < 0, z, 1 - z)
    y = xp.log1p(xp.exp(xp.where(x < 0, x, -x))) + xp.where(missed == 0, 0.0, size * missed)
    return narrow(y, logits, labels)  # type: ignore[no-any-return]
