"""kl_divergence: KL(p‖q) = Σᵢ pᵢ·log(pᵢ/qᵢ).

    dpᵢ = dy · (log pᵢ − log qᵢ + 1)
    dqᵢ = −dy · pᵢ/qᵢ

Domain: p ≥ 0 and q ≥ 0; they need not sum to one. Edges: p = 0 adds nothing, with slope 0 for q; q = 0 under
p > 0 gives ∞. At 0 the slopes are infinite: those at the smallest normal number are given. A negative number
gives NaN, as its logarithm does. Autodiff of Σ p·log(p/q) gives NaN at p = 0, for the value too. After S.
Kullback and R. Leibler, On information and sufficiency, 1951.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.elementwise import unbroadcast
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.entropy import log_of_positive
from pullback.ops.reduced import Axis, axes_of, dropped, narrow, spread, wide
from pullback.typed import T


@example(
    np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]),
    np.array([[0.3, 0.3, 0.4], [0.1, 0.2, 0.7]]),
    domain=(0.0, 1.0),
)
@example(np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]), np.array([0.3, 0.3, 0.4]), keepdims=True)
@custom_gradient
def kl_divergence(p: T, q: T, *, axis: Axis = -1, keepdims: bool = False) -> tuple[T, Function]:
    """Give the Kullback-Leibler divergence of q from p along an axis, in nats.

    Args:
        p: Probabilities; zeros are allowed.
        q: Probabilities of the same shape, or one that broadcasts with it.
        axis: The axis, or axes, along which they sum to one; None for all.
        keepdims: Whether these stay, with length one.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.kl_divergence(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5])).round(3).tolist()
        0.693

    Do not use it for logits: take the difference of their `log_softmax`.
    """
    xp = namespace(p, q)
    a, b = wide("kl_divergence", p), wide("kl_divergence", q)
    terms = a * (log_of_positive(a) - log_of_positive(b))
    terms = xp.where((b == 0) & (a > 0), xp.full_like(terms, xp.inf), terms)
    axes = axes_of("kl_divergence", terms, axis)
    y = xp.sum(terms, axis=axes, keepdims=True)

    def grad(dy: Any) -> Any:
        return _pulled(dy, p, q, axis, keepdims)

    return narrow(dropped(y, axes, keepdims), p), grad


def _pulled(dy: Any, p: Any, q: Any, axis: Axis, keepdims: bool) -> tuple[Any, Any]:
    xp = namespace(p, q)
    a, b, dy = wide("kl_divergence", p), wide("kl_divergence", q), wide("kl_divergence", dy)
    logs = log_of_positive(a) - log_of_positive(b)
    dy = dy if keepdims else spread(dy, axes_of("kl_divergence", logs, axis))
    tiny = float(xp.finfo(b.dtype).smallest_normal)
    ratio = a / xp.where(b == 0, xp.full_like(b, tiny), b)
    return unbroadcast(dy * (logs + 1), like=p), unbroadcast(-dy * ratio, like=q)
