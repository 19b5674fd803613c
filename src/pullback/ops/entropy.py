"""entropy: H = −Σᵢ pᵢ·log pᵢ of probabilities.

    dpᵢ = −dH · (log pᵢ + 1)

Domain: p ≥ 0; they need not sum to one. Edges: p = 0 adds nothing; its slope is infinite, and that at the
smallest normal number is given (88 in float32, 709 in float64); a negative p gives NaN, as its logarithm
does. Autodiff of −Σ p·log p gives NaN at p = 0, for the value too. After C. Shannon, A mathematical theory of
communication, 1948.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.reduced import Axis, axes_of, dropped, narrow, spread, wide
from pullback.typed import T


def log_of_positive(p: Any) -> Any:
    """Give log p, and at 0 that of the smallest normal number."""
    xp = namespace(p)
    tiny = float(xp.finfo(p.dtype).smallest_normal)
    return xp.log(xp.where(p == 0, xp.full_like(p, tiny), p))


@example(np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]), domain=(0.0, 1.0))
@example(np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]), axis=None, keepdims=True)
@custom_gradient
def entropy(p: T, *, axis: Axis = -1, keepdims: bool = False) -> tuple[T, Function]:
    """Give the entropy of probabilities along an axis, in nats.

    Args:
        p: Probabilities; zeros are allowed.
        axis: The axis, or axes, along which they sum to one; None for all.
        keepdims: Whether these stay, with length one.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.entropy(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])).round(3).tolist()
        [0.693, 0.0]

    Do not use it after a softmax: `entropy_from_logits` is more accurate.
    """
    work, axes = wide("entropy", p), axes_of("entropy", p, axis)
    h = namespace(p).sum(0 - work * log_of_positive(work), axis=axes, keepdims=True)

    def grad(dy: Any) -> Any:
        return _pulled(dy, p, axis, keepdims)

    return narrow(dropped(h, axes, keepdims), p), grad


def _pulled(dy: Any, p: Any, axis: Axis, keepdims: bool) -> Any:
    dy = wide("entropy", dy)
    dy = dy if keepdims else spread(dy, axes_of("entropy", p, axis))
    return -dy * (log_of_positive(wide("entropy", p)) + 1)
