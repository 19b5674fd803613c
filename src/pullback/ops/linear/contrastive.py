"""contrastive: InfoNCE, the cross-entropy of pairs among all others, without the matrix of similarities.

    zᵢⱼ = aᵢ·bⱼ / τ,   lossᵢ = log Σⱼ exp zᵢⱼ − zᵢᵢ,   and the same by columns

It is `linear_cross_entropy` with b for the output matrix and i for the label. Edges: one pair alone gives 0.
After van den Oord et al., Representation learning with contrastive predictive coding, 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.example import example
from pullback.ops.linear.arguments import called, require_matrices, require_option
from pullback.ops.linear.cross_entropy import linear_cross_entropy
from pullback.ops.linear.kernels import Array
from pullback.ops.linear.streamed import row_sums
from pullback.ops.whole import whole
from pullback.options import require_word
from pullback.typed import carrying

NAME = "contrastive"


@whole
@carrying(row_sums.rule)
@example(np.arange(6.0).reshape(2, 3) / 7, np.cos(np.arange(6.0)).reshape(2, 3))
def contrastive(
    a: Array,
    b: Array,
    *,
    temperature: Any = 1.0,
    symmetric: bool = True,
    reduction: str = "mean",
    chunk: int | None = None,
) -> Any:
    """Give the InfoNCE loss of pairs (aᵢ, bᵢ), each among all others, without holding their similarities.

    Args:
        a: One side, of shape (N, D), normalised if cosines are meant.
        b: The other side, of shape (N, D). With `symmetric=False` more rows may follow, which pair with none.
        temperature: What the similarities are divided by: a number, or a tensor that is learned.
        symmetric: Whether the mean with the loss of b among all a is taken.
        reduction: "mean", "sum" or "none".
        chunk: How many rows of b are computed at a time.

    Example:
        >>> import numpy as np, pullback as pb
        >>> float(pb.ops.contrastive(10 * np.eye(3), np.eye(3)).round(4))
        0.0001

    Do not use it where a pair may stand twice: its double would be pushed away.
    """
    call, (a, b) = called(NAME, a=a, b=b)
    require_matrices(call, a, b, None, "a b bias")
    require_word(NAME, "reduction", reduction, ("mean", "sum", "none"))
    if isinstance(temperature, (int, float)):
        require_option(NAME, "temperature", temperature, 0, np.inf, above=True)
    rows, others = call.shape(a), call.shape(b)
    if len(rows) != 2 or (None not in (rows[0], others[0]) and not _paired(rows[0], others[0], symmetric)):
        raise call.refused(
            f"`a` of shape {rows} and `b` of shape {others}",
            "as many rows of b as of a" + ("" if symmetric else ", or more"),
            "symmetric=False, if b has more",
        )
    labels = call.kernels.numbered(a)
    options: dict[str, Any] = {"reduction": reduction, "chunk": chunk}
    loss = linear_cross_entropy(a / temperature, b, labels, **options)
    if not symmetric:
        return loss
    return (loss + linear_cross_entropy(b / temperature, a, labels, **options)) / 2


def _paired(rows: Any, others: Any, symmetric: bool) -> bool:
    return bool(rows == others if symmetric else rows <= others)
