"""A scalar loss whose gradient is made while the logits are there: chunks of tokens, each computed once.

    L = Σᵢ cᵢ·lossᵢ,   lossᵢ = lseᵢ − (1 − ε)·zᵢ at its label − ε·meanⱼ zᵢⱼ + λ·lseᵢ²
    gᵢⱼ = ((1 + 2λ·lseᵢ)·softmaxᵢⱼ − (1 − ε)·[j = labelᵢ] − ε / V) · cap′
    dxᵢ = cᵢ·(g·w)ᵢ,   dw = gᵀ·(c·x),   db = gᵀ·c,   dcᵢ = lossᵢ

The weights go with the small arrays, and so do the sums of the exponentials: over the large one, g, each pass
counts. Where a host cannot write over what it has, the classes are looked at in pieces: of each there is a dw
by itself, of one at a time a product beside it, and the labels' part of g goes with the small arrays as well:

    hᵢ = −(1 − ε)·cap′ at its label,   dxᵢ += cᵢ·hᵢ·w at its label,   dw at its label += cᵢ·hᵢ·xᵢ
All of it is known before a cotangent comes: the one of a scalar is a factor. Three products, as many as with
all logits held; the log-sum-exp way needs four. Whoever wants the value alone pays for three, so the function
in front takes this way only where somebody records.
After M. Malek, efficient_cross_entropy, 2024, and Hsu et al., Liger kernel, 2024.
"""

from __future__ import annotations

import functools
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
    places = k.pieces(w, chunk)
    firsts = [first for first, _ in places]
    ws, bs = (
        [a] * len(places) if a is None or len(places) == 1 else [k.rows(a, *place) for place in places]
        for a in (w, bias)
    )

    def look(start: Any, size: Any, carry: Any) -> Any:
        total, *sums = carry
        xs, ys, cs = (k.rows(a, start, size) for a in (x, labels, coefficients))
        zs = [k.raw_product(xs, part, b, room) for part, b in zip(ws, bs)]
        made = k.fused(zs[0], ys, **options) if len(zs) == 1 else None
        losses, gs, scale, hits = (*made, None) if made else loss_and_slopes(k, zs, ys, firsts, **options)
        share = cs if scale is None else cs / scale
        weighed, dx, last = k.weighed(xs, share), None, share
        for i, (part, g) in enumerate(zip(ws, gs)):
            with k.after(last):
                step = k.into(g, part)
                dx = step if dx is None else dx + step
            with k.after(dx):
                last = sums[i] = k.added(sums[i], g, weighed, start)
        for i, g in enumerate(gs[: len(sums) - len(ws)], len(ws)):
            sums[i] = sums[i] + k.across(g, share[:, None])[:, 0]
        dx = k.scaled(dx, share)
        if hits is None:
            return (total + xp.sum(cs * losses), *sums), (dx, losses)
        hits = cs * hits
        return (total + xp.sum(cs * losses), *sums), (dx + k.at(w, ys) * hits[:, None], losses, hits)

    carry = (
        xp.sum(k.zeros(x)),
        *map(k.sums_of, ws),
        *(xp.zeros_like(k.wide(b)) for b in bs if b is not None),
    )
    likes = (x, coefficients) if len(places) == 1 else (x, coefficients, coefficients)
    (total, *sums), (dx, losses, *hits) = k.fold(k.length(x), chunk, look, carry, likes)
    for h in hits:
        steps = (*[k.wide(x) * h[:, None]] * len(ws), *[h] * len(ws))
        for i, (first, step) in enumerate(zip((firsts * 2)[: len(sums)], steps)):
            with k.after(sums[i - 1]):
                sums[i] = k.hit(sums[i], labels - first, step)
    joined = [a if len(a) == 1 else [xp.concat(a, axis=0)] for a in (sums[: len(ws)], sums[len(ws) :]) if a]
    parts = {"x": dx, "coefficients": losses, **{name: a for name, (a,) in zip(("w", "bias"), joined)}}

    def grad(dy: Array) -> Any:
        return dict(zip(parts, k.times(dy, list(parts.values()))))

    return total, grad


def loss_and_slopes(
    k: Kernels,
    zs: list[Array],
    labels: Array,
    firsts: list[Any],
    *,
    cap: float | None,
    smoothing: float,
    z_loss: float,
) -> tuple[Array, list[Array], Array | None, Array | None]:
    """Give the loss of each row of logits, the slopes of it, a number a row that divides these, and the hits.

    The logits come in pieces, which begin at `firsts`, and are used up. Nothing divides where None does; the
    slopes of one piece have the part of the labels, and there are no hits.
    """
    xp = namespace(zs[0])
    zs = [capped(k.wide(z), cap) for z in zs]
    tops = [xp.max(z, axis=1) for z in zs]
    level = finite(xp, functools.reduce(xp.maximum, tops))
    target = sum(k.picked(z, labels, first) for z, first in zip(zs, firsts))
    count = sum(z.shape[1] for z in zs)
    mean = sum(xp.sum(z, axis=1) for z in zs) / count if smoothing else level
    straight = zs if cap is None else [z / cap for z in zs]
    with k.after(target, mean):  # a chunk that nobody else reads is written over
        gs, scale, rest = k.softmax(zs, level)
    lse = level + rest
    losses = rest - (1 - smoothing) * (target - level) - smoothing * (mean - level) + z_loss * lse * lse
    unit = xp.ones_like(lse) if scale is None else scale
    if z_loss:
        gs = [k.scaled(g, 1 + 2 * z_loss * lse) for g in gs]
    if smoothing:
        gs = [g - (smoothing / count * unit)[:, None] for g in gs]
    hits = None
    if len(gs) == 1:
        gs = [k.add_picked(gs[0], labels, 0, (smoothing - 1) * unit)]
    else:
        there = xp.zeros_like(target) if cap is None else target / cap
        hits = (smoothing - 1) * (1 - there * there)
    if cap is not None:
        gs = [g * (1 - z * z) for g, z in zip(gs, straight)]
    return losses, gs, scale, hits
