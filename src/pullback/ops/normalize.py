"""normalize: u = x / ‖x‖, and 0 where x is 0.

    with r = x / m, m a power of two near max |x| where that is large or small, and n = √Σ r²:
    u = r / n,   ‖x‖ = m·n, without an overflow, and without a rounding by m
    dx = (du − u · Σ u·du) / ‖x‖

Domain: every x. Edges: x = 0 has no direction: value and slope are 0 there (the true slope is infinite);
entries that are ±∞ share the direction evenly, with slope 0; NaN makes its row NaN. Autodiff of x / √Σ x²
gives NaN at 0, and loses x below 10⁻²³ or above 10¹⁹ in float32, where squares leave its range.
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


def direction(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Give x / ‖x‖, n, and 1 / m."""
    xp = namespace(x)
    top = largest(xp.abs(x), axes)
    # squares of what is between these two, and sums of them, stay within the range of normal numbers
    small, large, step = (-400, 400, 700) if float(xp.finfo(x.dtype).max) > 1e300 else (-40, 50, 90)
    up, down = xp.full_like(top, 2.0**step), xp.full_like(top, 2.0**-step)
    scale = xp.where(top < 2.0**small, up, xp.where(top > 2.0**large, down, xp.ones_like(top)))
    unit = hosts.of(x).arrays.clip(x, -1.0, 1.0)  # of ±∞; NaN stays
    r = xp.where(xp.isinf(top), xp.where(xp.isfinite(x), xp.zeros_like(x), unit), x * scale)
    squares = xp.sum(r * r, axis=axes, keepdims=True)
    n = xp.sqrt(xp.where(squares == 0, xp.ones_like(squares), squares))
    return xp.where(top == 0, xp.zeros_like(x), r / n), n, scale


@custom_gradient
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]))
@example(np.array([[0.7e-200, -1.3e-200], [0.4, 0.9]]) * 1e200, axis=None)
def normalize(x: T, *, axis: Axis = -1) -> tuple[T, Function]:
    """Give vectors of length one: each divided by its Euclidean norm, 0 where that is 0.

    Args:
        x: Any real values.
        axis: The axis, or axes, along which a vector lies; None for all.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.normalize(np.array([[3e-200, 4e-200], [0.0, 0.0]])).round(3).tolist()
        [[0.6, 0.8], [0.0, 0.0]]

    Do not use it where a zero vector is a mistake: it passes here without a word.
    """
    u = direction(wide("normalize", x), axes_of("normalize", x, axis))[0]

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, axis)

    return narrow(u, x), grad


def _pulled(dy: Any, x: Any, axis: Axis) -> Any:
    xp = namespace(x)
    x, dy, axes = wide("normalize", x), wide("normalize", dy), axes_of("normalize", x, axis)
    u, n, scale = direction(x, axes)
    across = (dy - u * xp.sum(u * dy, axis=axes, keepdims=True)) / n * scale
    top = largest(xp.abs(x), axes)
    return xp.where((top == 0) | xp.isinf(top), xp.zeros_like(x), across)
