"""One kernel for GPUs: a row of logits becomes its loss and, written over it, its slopes.

Each program reads a row twice and writes it once, in float32 registers: no other array of that size is made.
The second time goes backwards, so that what was read last is still in the cache.
"""

from __future__ import annotations

from typing import Any

import torch
import triton  # type: ignore[import-not-found,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,unused-ignore]


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _capped(s, cap):  # type: ignore[no-untyped-def]
    return cap * (2 / (1 + tl.exp(-2 * s / cap)) - 1)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _rows(  # type: ignore[no-untyped-def]
    z,
    labels,
    losses,
    stride,
    classes,
    cap,
    eps,
    z_loss,
    capped: tl.constexpr,
    smoothed: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    z += row * stride
    label = tl.load(labels + row)
    inside = (label >= 0) & (label < classes)
    target = tl.load(z + label, mask=inside, other=0.0).to(tl.float32)
    if capped:
        target = _capped(target, cap)
    top, total, sums = -float("inf"), 0.0, 0.0
    for start in range(0, classes, block):
        at = start + tl.arange(0, block)
        # kept in the cache: it is read again
        s = tl.load(z + at, mask=at < classes, other=-float("inf"), eviction_policy="evict_last")
        s = s.to(tl.float32)
        if capped:
            s = tl.where(at < classes, _capped(s, cap), -float("inf"))
        higher = tl.maximum(top, tl.max(s, 0))
        level = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(top - level) + tl.sum(tl.exp(s - level), 0)
        if smoothed:
            sums += tl.sum(tl.where(at < classes, s, 0.0), 0)
        top = higher
    level = tl.where(top == -float("inf"), 0.0, top)
    rest = tl.log(total)
    lse = level + rest
    loss = rest - (1 - eps) * (target - level) + z_loss * lse * lse
    if smoothed:
        loss -= eps * (sums / classes - level)
    tl.store(losses + row, loss)
    factor = (1 + 2 * z_loss * lse) / total
    last = (classes - 1) // block * block
    for start in range(0, classes, block):
        at = last - start + tl.arange(0, block)
        s = tl.load(z + at, mask=at < classes, other=0.0, eviction_policy="evict_first").to(tl.float32)
        if capped:
            s = _capped(s, cap)
        g = factor * tl.exp(s - level) - eps / classes
        g -= tl.where(at == label, 1 - eps, 0.0)
        if capped:
            g *= 1 - (s / cap) * (s / cap)
        tl.store(z + at, g.to(z.dtype.element_ty), mask=at < classes, eviction_policy="evict_first")


def loss_and_slopes(
    z: Any, labels: Any, *, cap: float | None, smoothing: float, z_loss: float
) -> tuple[Any, Any]:
    """Give the loss of each row of logits before their cap, and the slopes of it, in z."""
    losses = z.new_empty(len(z), dtype=torch.float32)
    if len(z):
        block = min(16384, triton.next_power_of_2(z.shape[1]))  # the fastest of those tried on an H200
        _rows[(len(z),)](
            z,
            labels,
            losses,
            z.stride(0),
            z.shape[1],
            cap or 1.0,
            smoothing,
            z_loss,
            capped=cap is not None,
            smoothed=smoothing > 0,
            block=block,
            num_warps=max(1, block // 1024),
        )
    return losses, z
