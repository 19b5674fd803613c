"""entropy_from_logits: H = −Σᵢ pᵢ·log pᵢ with p = softmax(x), kept as its input alone.

    with l = log_softmax(x):   H = −Σ e^l · l,   each term ≥ 0
    dxᵢ = −dH · pᵢ · (lᵢ + H)

Domain: every x. Edges: −∞ has p = 0, adds nothing and has slope 0; so has a row of nothing but −∞; where ∞
stands, those places share the one evenly; NaN stays NaN. Autodiff of −Σ p·log p with p = softmax(x) gives NaN
where a p rounds to 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.log_softmax import log_probabilities
from pullback.ops.reduced import Axis, axes_of, dropped, narrow, spread, wide
from pullback.ops.softmax import probabilities
from pullback.typed import T


@custom_gradient
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]))
@example(np.array([[0.7, -900.0, 2.1], [0.4, 800.0, -2.6]]), axis=0, keepdims=True)
def entropy_from_logits(x: T, *, axis: Axis = -1, keepdims: bool = False) -> tuple[T, Function]:
    """Give the entropy of softmax(x) along an axis, in nats.

    Args:
        x: Any real values: logits.
        axis: The axis, or axes, of the softmax; None for all.
        keepdims: Whether these stay, with length one.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.entropy_from_logits(np.array([[5.0, 5.0, -np.inf], [0.0, -99.0, -99.0]])).round(3).tolist()
        [0.693, 0.0]

    Do not use it for probabilities: those have `entropy`.
    """
    axes = axes_of("entropy_from_logits", x, axis)
    h = _parts(wide("entropy_from_logits", x), axes)[0]

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, axis, keepdims)

    return narrow(dropped(h, axes, keepdims), x), grad


def _parts(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Give the entropy, the probabilities, and their logarithms, 0 where there is no probability."""
    xp = namespace(x)
    log = log_probabilities(x, axes)
    none = log == -xp.inf
    log = xp.where(none, xp.zeros_like(log), log)
    p = probabilities(x, axes)
    return xp.sum(0 - p * log, axis=axes, keepdims=True), p, log


def _pulled(dy: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    axes = axes_of("entropy_from_logits", x, axis)
    h, p, log = _parts(wide("entropy_from_logits", x), axes)
    dy = wide("entropy_from_logits", dy)
    return -(dy if keepdims else spread(dy, axes)) * (p * (log + h))
