"""safe_norm: ‖x‖ = √Σ x², with slope 0 at x = 0, and without an overflow.

    ‖x‖ = m · √Σ (x/m)², m a power of two near max |x| where that is large or small
    dx = dy · x / ‖x‖

Domain: every x. Edges: at x = 0 the norm has a kink: of its slopes, which are all vectors of length up to
one, 0 is taken; ±∞ gives ∞, and those places share the slope evenly; nothing at all gives 0; NaN stays NaN.
Autodiff of √Σ x² gives NaN at 0, 0 below 10⁻²³ and ∞ above 10¹⁹ in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.normalize import direction
from pullback.ops.reduced import Axis, axes_of, dropped, largest, narrow, spread, wide
from pullback.typed import T


@custom_gradient
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]))
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]), axis=0, keepdims=True)
def safe_norm(x: T, *, axis: Axis = None, keepdims: bool = False) -> tuple[T, Function]:
    """Give the Euclidean norm over axes, with slope 0 where it is 0.

    Args:
        x: Any real values.
        axis: The axis, or axes, that are summed over; None for all.
        keepdims: Whether these stay, with length one.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.safe_norm(np.array([[3e200, 0.0], [0.0, 0.0]]), axis=-1).tolist()
        [3e+200, 0.0]

    Do not use it for a squared norm: `sum(x * x)` is smooth everywhere.
    """
    xp = namespace(x)
    work, axes = wide("safe_norm", x), axes_of("safe_norm", x, axis)
    _, n, scale = direction(work, axes)
    top = largest(xp.abs(work), axes)
    y = xp.where((top == 0) | xp.isinf(top), top + 0 * n, n / scale)  # NaN beside ∞ stays NaN

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, axis, keepdims)

    return narrow(dropped(y, axes, keepdims), x), grad


def _pulled(dy: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    dy, axes = wide("safe_norm", dy), axes_of("safe_norm", x, axis)
    return (dy if keepdims else spread(dy, axes)) * direction(wide("safe_norm", x), axes)[0]
