"""log_softmax: yᵢ = xᵢ − log Σⱼ e^xⱼ, kept as its input alone.

    with m = max x and z = x − m:   yᵢ = zᵢ − log Σⱼ e^zⱼ
    dxᵢ = dyᵢ − pᵢ · Σⱼ dyⱼ,   p = softmax(x)

Domain: every x. Edges: −∞ stays −∞ with p = 0, so its slope is dyᵢ; a row of nothing but −∞ stays so; where ∞
stands, those places share the one evenly; NaN makes its row NaN. Autodiff of log(softmax(x)) gives −∞, and
then NaN, where p is below the smallest number: 104 below the largest in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.reduced import Axis, axes_of, narrow, wide
from pullback.ops.softmax import probabilities, shifted
from pullback.typed import T


def log_probabilities(x: Any, axes: tuple[int, ...]) -> Any:
    """Give the logarithm of a softmax in operations that are right at every order."""
    xp = namespace(x)
    z, _ = shifted(x, axes)
    total = xp.sum(xp.exp(z), axis=axes, keepdims=True)
    return z - xp.log(xp.where(total == 0, xp.ones_like(total), total))


@custom_gradient
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]))
@example(np.array([[0.7, -900.0, 2.1], [0.4, 800.0, -2.6]]), axis=0)
def log_softmax(x: T, *, axis: Axis = -1) -> tuple[T, Function]:
    """Give the logarithm of a softmax, also where that is 0.

    Args:
        x: Any real values, for instance logits.
        axis: The axis, or axes, along which the softmax sums to one; None for all.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.log_softmax(np.array([0.0, -1000.0])).tolist()
        [0.0, -1000.0]

    Do not use it before a cross-entropy: `cross_entropy_from_logits` takes the logits themselves.
    """
    y = log_probabilities(wide("log_softmax", x), axes_of("log_softmax", x, axis))

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, axis)

    return narrow(y, x), grad


def _pulled(dy: Any, x: Any, axis: Axis) -> Any:
    dy, axes = wide("log_softmax", dy), axes_of("log_softmax", x, axis)
    p = probabilities(wide("log_softmax", x), axes)
    return dy - p * namespace(x).sum(dy, axis=axes, keepdims=True)
