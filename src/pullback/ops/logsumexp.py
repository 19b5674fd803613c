"""logsumexp: log Σᵢ e^xᵢ, kept as its input alone.

    with m = max x:   y = m + log Σᵢ e^(xᵢ−m)
    dxᵢ = dy · softmax(x)ᵢ

As e^(xᵢ−y) the slope would lose as many digits as y has before the point; so it is a softmax.

Domain: every x. Edges: −∞ adds nothing and has slope 0; nothing but −∞, or nothing at all, gives −∞ with
slope 0; ∞ gives ∞, and those places share the slope evenly; NaN stays NaN. Autodiff of log Σ e^x overflows
from x = 89 on in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.reduced import Axis, axes_of, dropped, narrow, spread, wide
from pullback.ops.softmax import probabilities, shifted
from pullback.typed import T


@custom_gradient
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]))
@example(np.array([[0.7, -900.0, 2.1], [0.4, 800.0, -2.6]]), axis=-1, keepdims=True)
@example(np.array([[[0.7, -1.3], [2.1, 0.4]], [[0.9, -2.6], [0.1, 0.2]]]), axis=(0, -1))
def logsumexp(x: T, *, axis: Axis = None, keepdims: bool = False) -> tuple[T, Function]:
    """Give the logarithm of the sum of e^x over axes.

    Args:
        x: Any real values.
        axis: The axis, or axes, that are summed over; None for all.
        keepdims: Whether these stay, with length one.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.logsumexp(np.array([1000.0, 1000.0])).round(3).tolist()
        1000.693

    Do not use it for a weighted sum with negative weights: positive ones are `logsumexp(x + log(weights))`.
    """
    xp = namespace(x)
    axes = axes_of("logsumexp", x, axis)
    z, top = shifted(wide("logsumexp", x), axes)
    total = xp.sum(xp.exp(z), axis=axes, keepdims=True)
    finite = top + xp.log(xp.where(total == 0, xp.ones_like(total), total))
    y = xp.where(xp.isinf(top), top + total, finite)  # NaN beside ∞ stays NaN
    y = xp.where(total == 0, xp.full_like(total, -xp.inf), y)

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, axis, keepdims)

    return narrow(dropped(y, axes, keepdims), x), grad


def _pulled(dy: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    dy, axes = wide("logsumexp", dy), axes_of("logsumexp", x, axis)
    return (dy if keepdims else spread(dy, axes)) * probabilities(wide("logsumexp", x), axes)
