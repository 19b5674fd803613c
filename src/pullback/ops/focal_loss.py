"""focal_loss: the cross-entropy of logits, weighted by how far a prediction is off, raised to γ.

With s = σ(−x), the miss of the label 1, and φ(x) = −s^γ·log(1 − s) = s^γ·softplus(−x):
    loss = z·φ(x) + (1 − z)·φ(−x),   times α for the label 1 and 1 − α for 0, if α is given
    φ′(x) = −s^γ·(γ·σ(x)·softplus(−x) + s): a sum of terms of one sign
With e = e^−|x|:   s^γ = e^(−γ·max(x, 0)) / (1 + e)^γ, and σ(x) and s are 1 and e, over 1 + e.
It is right to the last digits for a γ that is a power of two.

Domain: every x; 0 ≤ z ≤ 1; γ ≥ 0. Edges: at ±∞ 0 for the label that is met, ∞ for another one; NaN stays
NaN. For another γ the product γ·x is rounded, and far out s^γ has γ·|x| times that error.
After T.-Y. Lin et al., Focal loss for dense object detection, 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.log1p import log1p
from pullback.ops.precision import narrow, reals
from pullback.options import require_number
from pullback.typed import T


def _missed(xp: Any, x: Any, gamma: float) -> tuple[Any, Any, Any, Any, Any]:
    """Give e^−|x|, then for either label e^(−γ·max(±x, 0)) and softplus(∓x)."""
    negative = x < 0
    size = xp.where(negative, -x, x)  # |x| has no slope at 0
    e, far = xp.exp(-size), xp.exp(-gamma * size)
    near = log1p(e)
    one = xp.where(negative, 1.0, far), near + xp.where(negative, size, 0.0)
    zero = xp.where(negative, far, 1.0), near + xp.where(negative, 0.0, size)
    return e, *one, *zero


def _power(xp: Any, base: Any, exponent: float) -> Any:
    """Multiply where that is exact to fewer roundings than a power is."""
    if exponent not in (0, 1, 2, 3):
        return xp.pow(base, exponent + 0 * base)
    product = base if exponent else 1 + 0 * base
    for _ in range(int(exponent) - 1):
        product = product * base
    return product


def _phis(xp: Any, x: Any, gamma: float) -> tuple[Any, Any]:
    """Give φ(x) and φ(−x)."""
    e, weight, loss, other_weight, other_loss = _missed(xp, x, gamma)
    below = _power(xp, 1 + e, gamma)
    return (
        xp.where(weight == 0, 0.0, weight * loss) / below,
        xp.where(other_weight == 0, 0.0, other_weight * other_loss) / below,
    )


def _phi_slopes(xp: Any, x: Any, gamma: float) -> tuple[Any, Any]:
    """Give φ′(x) and φ′(−x)."""
    e, weight, loss, other_weight, other_loss = _missed(xp, x, gamma)
    below = _power(xp, 1 + e, gamma + 1)
    # e is 0 before a loss is infinite
    met, other = xp.where(e == 0, 0.0, gamma * loss), xp.where(e == 0, 0.0, gamma * other_loss)
    total = xp.where(x < 0, met * e + 1, met + e)
    other_total = xp.where(x < 0, other + e, other * e + 1)
    return -weight * total / below, -other_weight * other_total / below


def _balance(alpha: float | None) -> tuple[float, float]:
    return (1.0, 1.0) if alpha is None else (alpha, 1.0 - alpha)


def _slopes(logits: Any, labels: Any, *, gamma: float = 2.0, alpha: float | None = None) -> tuple[Any, Any]:
    xp, x, z = reals("focal_loss", logits, labels)
    one, zero = _balance(alpha)
    met, other = _phis(xp, x, gamma)
    by_met, by_other = _phi_slopes(xp, x, gamma)
    return one * z * by_met - zero * (1 - z) * by_other, one * met - zero * other


@example(np.array([0.7, -1.3, 2.1]), np.array([1.0, 0.0, 0.3]), domain={"labels": (0.0, 1.0)})
@elementwise(partials=_slopes)
def focal_loss(logits: T, labels: T, *, gamma: float = 2.0, alpha: float | None = None) -> T:
    """Give the binary focal loss of labels and σ(logits), element by element.

    Args:
        logits: Any real values.
        labels: 0, 1, or probabilities; of a shape that broadcasts with that of `logits`.
        gamma: How much less an easy example counts; 0 is the cross-entropy.
        alpha: The weight of the label 1, between 0 and 1; that of 0 is 1 − alpha. None weighs both with 1.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.focal_loss(np.array([0.0, 5.0]), np.array([1.0, 1.0])).round(6).tolist()
        [0.173287, 0.0]

    Do not use it where probabilities must be calibrated: it is no proper score.
    """
    require_number("focal_loss", "gamma", gamma, least=0, fix="gamma=2.0")
    require_number("focal_loss", "alpha", alpha, least=0, most=1, fix="alpha=0.25")
    xp, x, z = reals("focal_loss", logits, labels)
    one, zero = _balance(alpha)
    met, other = _phis(xp, x, gamma)
    y = one * xp.where(z == 0, 0.0, z * met) + zero * xp.where(z == 1, 0.0, (1 - z) * other)
    return narrow(y, logits, labels)  # type: ignore[no-any-return]
