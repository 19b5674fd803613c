"""linear_cross_entropy: the loss of a language model, from hidden states and the output matrix.

    zᵢⱼ = xᵢ·wⱼ + bⱼ,   lseᵢ = log Σⱼ exp zᵢⱼ
    lossᵢ = lseᵢ − (1 − ε)·zᵢ at its label − ε·meanⱼ zᵢⱼ + λ·lseᵢ²

Where a sum of products costs no more than the last of them, a scalar that somebody records is computed with
its gradient, in chunks of tokens (`accumulated.py`). All else keeps the log-sum-exp and computes logits
again, in chunks of the vocabulary (`streamed.py`). The value alone costs one product.

Domain: all finite x, w, b. Edges: no tokens, or none that counts: 0 with gradients 0, also for the mean; −∞
in the bias takes a class out; V = 1 gives 0. 16-bit inputs are summed in float32, and so is the loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.example import example
from pullback.namespace import namespace
from pullback.ops.linear.accumulated import weighted_sum
from pullback.ops.linear.arguments import (
    called,
    coefficients,
    require_labels,
    require_matrices,
    require_option,
    require_tokens,
)
from pullback.ops.linear.chunks import classes_of, tokens_of
from pullback.ops.linear.kernels import Array
from pullback.ops.linear.streamed import row_sums
from pullback.ops.whole import whole
from pullback.options import require_word
from pullback.typed import carrying

NAME = "linear_cross_entropy"


@whole
@carrying(row_sums.rule)
@example(np.arange(6.0).reshape(2, 3) / 7, np.cos(np.arange(15.0)).reshape(5, 3), np.array([1, 4]))
def linear_cross_entropy(
    x: Array,
    w: Array,
    labels: Array,
    *,
    bias: Array | None = None,
    weights: Array | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    reduction: str = "mean",
    chunk: int | None = None,
) -> Any:
    """Give the cross-entropy of the logits x·wᵀ, which are never held all at once.

    Args:
        x: Hidden states, of shape (…, D).
        w: The output matrix, of shape (V, D).
        labels: The class of each token, of shape (…).
        bias: One number a class.
        weights: One number a token. The mean is that of the weighted losses, by the sum of the weights.
        ignore_index: The label of tokens that do not count.
        label_smoothing: The share of each target that is spread over all classes.
        z_loss: The factor of the squared log-sum-exp, which is added.
        soft_cap: Bends the logits into (−soft_cap, soft_cap).
        reduction: "mean", "sum" or "none".
        chunk: How many classes, or tokens where the gradient is made at once, are computed at a time.

    Example:
        >>> import numpy as np, pullback as pb
        >>> float(pb.ops.linear_cross_entropy(np.zeros((2, 3)), np.zeros((4, 3)), np.array([0, 3])).round(3))
        1.386

    A label outside the classes is an error. Where XLA compiles the program, or a GPU would have to be waited
    for, its loss is NaN.

    Do not use it where the logits are needed anyway, or are few.
    """
    return loss(
        NAME,
        x,
        w,
        labels,
        bias=bias,
        weights=weights,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        soft_cap=soft_cap,
        reduction=reduction,
        chunk=chunk,
    )


def loss(
    name: str,
    x: Array,
    w: Array,
    labels: Array,
    *,
    bias: Array | None = None,
    weights: Array | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    reduction: str = "mean",
    chunk: int | None = None,
) -> Any:
    """Give the cross-entropy, under the name of the function that was called."""
    call, (x, w, labels, bias, weights) = called(name, x=x, w=w, labels=labels, bias=bias, weights=weights)
    host, k = call.host, call.kernels
    require_matrices(call, x, w, bias)
    require_word(name, "reduction", reduction, ("mean", "sum", "none"))
    require_option(name, "label_smoothing", label_smoothing, 0, 1, above=False)
    require_option(name, "z_loss", z_loss, 0, np.inf, above=False)
    if soft_cap is not None:
        require_option(name, "soft_cap", soft_cap, 0, np.inf, above=True)
    shape = call.shape(x)[:-1]
    require_tokens(call, "labels", labels, shape)
    require_tokens(call, "weights", weights, shape)
    if host.spec(labels).kind != "integer":
        raise call.refused(f"`labels` of dtype {host.spec(labels).dtype}", "whole numbers", "labels of int32")
    x, flat = call.tokens(x, 1), k.index(call.tokens(labels, 0))
    xp = namespace(x)
    counted = flat != ignore_index
    outside = require_labels(call, flat, k.length(w), counted)
    zero = k.zeros(x)
    weighed = None if weights is None else k.wide(call.tokens(weights, 0))
    c = xp.astype(counted, zero.dtype) if weighed is None else xp.where(counted, weighed, zero)
    c = xp.where(outside, zero + np.nan, c)
    c = coefficients(c, reduction)
    count, classes = call.shape(x)[0], call.shape(w)[0]
    moving = [t for t in (x, w, bias, weights) if t is not None]
    if reduction != "none" and k.adds_in_place(w) and host.recording(moving):
        size = tokens_of(name, chunk, classes, count, held=k.HELD if k.is_near(x) else None)
        return weighted_sum(
            x, w, bias, flat, c, cap=soft_cap, smoothing=label_smoothing, z_loss=z_loss, chunk=size
        )
    size = classes_of(name, chunk, count, classes, near=k.is_near(x))
    smooth = label_smoothing > 0
    lse, surprise, *spread = row_sums(x, w, bias, flat, cap=soft_cap, spread=smooth, chunk=size)
    losses = (1 - label_smoothing) * surprise + z_loss * lse * lse
    for s in spread:
        losses = losses + label_smoothing * s
    return call.reduced(c * xp.where(counted, losses, zero), reduction, shape)
