"""A scalar loss whose gradient is made while the logits are there: chunks of tokens, each computed once.

    L = Σᵢ cᵢ·lossᵢ,   lossᵢ = lseᵢ − (1 − ε)·zᵢ at its label − ε·meanⱼ zᵢⱼ + λ·lseᵢ²
    gᵢⱼ = ((1 + 2λ·lseᵢ)·softmaxᵢⱼ − (1 − ε)·[j = labelᵢ] − ε / V) · cap′
    dxᵢ = cᵢ·(g·w)ᵢ,   dw = gᵀ·(c·x),   db = gᵀ·c,   dcᵢ = lossᵢ

The weights go with the small arrays: over the large one, g, each pass counts.
All of it is known before a cotangent comes: the one of a scalar is a factor. Three products, as many as with
all logits held; the log-sum-exp way needs four. Whoever wants the value alone pays for three, so the function
in front takes this way only where somebody records.
After M. Malek, efficient_cross_entropy, 2024, and Hsu et al., Liger kernel, 2024.
"""

from __future__ import annotations

from typing import Any

from pullback.define import custom_gradient
from pullback.namespace import namespace
from pullback.ops.linear.kernels import Array, Kernels, kernels_of
from pullback.ops.linear.streamed import capped, finite


@custom_gradient
def weighted_sum(
    x: Array,
    w: Array,
    bias: Array | None,
    labels: Array,
    coefficients: Array,
    *,
    cap: float | None,
    smoothing: float,
    z_loss: float,
    chunk: int,
) -> Any:
    """Give Σ cᵢ·lossᵢ."""
    k, xp = kernels_of(x), namespace(x)
    room = k.room(x, w, chunk)
    options: dict[str, Any] = {"cap": cap, "smoothing": smoothing, "z_loss": z_loss}

    def look(start: Any, size: Any, carry: Any) -> Any:
        total, dw, *db = carry
        xs, ys, cs = (k.rows(a, start, size) for a in (x, labels, coefficients))
        z = k.raw_product(xs, w, bias, room)
        made = k.fused(z, ys, **options) or loss_and_slopes(k, capped(k.wide(z), cap), ys, **options)
        losses, g = made
        dw = k.added(dw, g, k.weighed(xs, cs), start)
        db = [b + k.across(g, cs[:, None])[:, 0] for b in db]
        return (total + xp.sum(cs * losses), dw, *db), (k.scaled(k.into(g, w), cs), losses)

    carry = (xp.sum(k.zeros(x)), k.sums_of(w), *([] if bias is None else [xp.zeros_like(k.wide(bias))]))
    (total, *dws), (dx, losses) = k.fold(k.length(x), chunk, look, carry, (x, coefficients))
    parts = {"x": dx, "coefficients": losses, **dict(zip(("w", "bias"), dws))}

    def grad(dy: Array) -> Any:
        return dict(zip(parts, k.times(dy, list(parts.values()))))

    return total, grad


def loss_and_slopes(
    k: Kernels, z: Array, labels: Array, *, cap: float | None, smoothing: float, z_loss: float
) -> tuple[Array, Array]:
    """Give the loss of each row of logits, and the slopes of it; z is used up."""
    xp = namespace(z)
    top = xp.max(z, axis=1)
    level = finite(xp, top)
    target = k.picked(z, labels, 0)
    mean = xp.mean(z, axis=1) if smoothing else level
    straight = z if cap is None else z / cap
    p, rest = k.softmax(z, level)
    lse = level + rest
    losses = rest - (1 - smoothing) * (target - level) - smoothing * (mean - level) + z_loss * lse * lse
    g = k.scaled(p, 1 + 2 * z_loss * lse) if z_loss else p
    if smoothing:
        g = g - smoothing / g.shape[1]
    g = k.add_picked(g, labels, 0, xp.full_like(lse, smoothing - 1))
    return losses, g if cap is None else g * (1 - straight * straight)
