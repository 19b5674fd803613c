"""softmax: pᵢ = e^xᵢ / Σⱼ e^xⱼ, kept as its input alone.

    with m = max x and z + δ = x − m:   eᵢ = e^zᵢ·(1 + δᵢ),   pᵢ = eᵢ / Σⱼ eⱼ
    dxᵢ = pᵢ · (dpᵢ − Σⱼ pⱼ·dpⱼ)

δ is what x − m loses by rounding (Knuth's two-sum): without it a p of e^−700 is wrong by 700 roundoffs. p is
computed again in the pullback, so nothing but x is kept.

Domain: every x. Edges: −∞ has p = 0 and slope 0; a row of nothing but −∞ is all zeros, value and slope; where
∞ stands, those places share the one evenly; an axis of length 0 gives nothing; NaN makes its row NaN.
Autodiff of e^x / Σ e^x divides ∞ by ∞ from x = 89 on in float32 (11 in float16); the frameworks' own give NaN
for a row of −∞. After J. Bridle, Probabilistic interpretation of feedforward classification network outputs,
1990.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.reduced import Axis, axes_of, largest, narrow, wide
from pullback.typed import T


def shifted(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Give x less its largest value, also where that is infinite, and that value."""
    xp = namespace(x)
    top = largest(x, axes)
    finite = xp.where(xp.isinf(top), xp.zeros_like(top), top)
    beside = xp.where(x < xp.inf, xp.full_like(x, -xp.inf), xp.where(x == xp.inf, xp.zeros_like(x), x))
    return xp.where(top == xp.inf, beside, x - finite), top  # the largest is cut off: z moves as x does


def _lost(x: Any, top: Any) -> Any:
    """Give what x − top loses by rounding; 0 where one of them is infinite."""
    xp = namespace(x)
    top = xp.where(xp.isinf(top), xp.zeros_like(top), top)
    x = xp.where(xp.isinf(x), top + xp.zeros_like(x), x)
    less = x - top
    back = less - x
    return hosts.of(x).arrays.stop((x - (less - back)) - (top + back))


def probabilities(x: Any, axes: tuple[int, ...]) -> Any:
    """Give the softmax in operations that are right at every order; 0 where there is nothing but −∞."""
    xp = namespace(x)
    z, top = shifted(x, axes)
    e = xp.exp(z)
    e = e + e * _lost(x, top)
    total = xp.sum(e, axis=axes, keepdims=True)
    return e / xp.where(total == 0, xp.ones_like(total), total)


@custom_gradient
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]))
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]), axis=(0, 1))
@example(np.array([[0.7, -900.0, 2.1], [0.4, 800.0, -2.6]]), axis=0)
def softmax(x: T, *, axis: Axis = -1) -> tuple[T, Function]:
    """Give numbers that are positive and sum to one along an axis: e^x over its sum.

    Args:
        x: Any real values, for instance logits.
        axis: The axis, or axes, along which they sum to one; None for all.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.softmax(np.array([1000.0, 1000.0, -np.inf])).tolist()
        [0.5, 0.5, 0.0]

    Do not use it before a logarithm or a cross-entropy: `log_softmax` and one from logits are more accurate.
    """
    p = probabilities(wide("softmax", x), axes_of("softmax", x, axis))

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, axis)

    return narrow(p, x), grad


def _pulled(dy: Any, x: Any, axis: Axis) -> Any:
    xp = namespace(x)
    axes, dp = axes_of("softmax", x, axis), wide("softmax", dy)
    p = probabilities(wide("softmax", x), axes)
    return p * (dp - xp.sum(p * dp, axis=axes, keepdims=True))
