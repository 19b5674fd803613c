"""linear_log_probs: the log-probability of each label, for preference losses, without the logits.

    log pᵢ = zᵢ at its label − log Σⱼ exp zᵢⱼ,   zᵢⱼ = cap(xᵢ·wⱼ + bⱼ)

Its derivation is that of the surprise in `streamed.py`, with the other sign. Edges: 0 for an ignored label,
with gradients 0; −∞ for a class that its bias takes out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.example import example
from pullback.ops.linear.cross_entropy import loss
from pullback.ops.linear.kernels import Array
from pullback.ops.linear.streamed import row_sums
from pullback.ops.whole import whole
from pullback.typed import carrying


@whole
@carrying(row_sums.rule)
@example(np.arange(6.0).reshape(2, 3) / 7, np.cos(np.arange(15.0)).reshape(5, 3), np.array([1, 4]))
def linear_log_probs(
    x: Array,
    w: Array,
    labels: Array,
    *,
    bias: Array | None = None,
    ignore_index: int = -100,
    soft_cap: float | None = None,
    chunk: int | None = None,
) -> Any:
    """Give the log-probability of each label under softmax(x·wᵀ), without holding the logits.

    Args:
        x: Hidden states, of shape (…, D).
        w: The output matrix, of shape (V, D).
        labels: The class of each token, of shape (…). The result has this shape.
        bias: One number a class.
        ignore_index: The label of tokens that do not count: their log-probability is 0.
        soft_cap: Bends the logits into (−soft_cap, soft_cap).
        chunk: How many classes are computed at a time.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.linear_log_probs(np.zeros((2, 3)), np.zeros((4, 3)), np.array([0, -100])).round(3).tolist()
        [-1.386, -0.0]

    Do not use it for the mean of a cross-entropy: `linear_cross_entropy` is faster at that.
    """
    options: dict[str, Any] = {
        "bias": bias,
        "ignore_index": ignore_index,
        "soft_cap": soft_cap,
        "chunk": chunk,
    }
    return -loss("linear_log_probs", x, w, labels, reduction="none", **options)
