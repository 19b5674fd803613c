"""Row sums of logits in one pass over the vocabulary, for any loss of them.

    zᵢⱼ = cap(xᵢ·wⱼ + bⱼ),  cap(s) = s, or c·tanh(s / c)
    lseᵢ = log Σⱼ exp zᵢⱼ,   surpriseᵢ = lseᵢ − zᵢ at its label,   spreadᵢ = lseᵢ − Σⱼ zᵢⱼ / V

The log-sum-exp is kept, and the logits of a chunk are computed again for cotangents a, b, c of the three:

    gᵢⱼ = ((aᵢ + bᵢ + cᵢ)·exp(zᵢⱼ − lseᵢ) − bᵢ·[j = labelᵢ] − cᵢ / V) · cap′,   cap′ = 1 − (zᵢⱼ / cap)²
    dx = Σ gᵢⱼ·wⱼ,   dwⱼ = Σ gᵢⱼ·xᵢ,   dbⱼ = Σ gᵢⱼ

lse is kept as the largest logit and the rest: beside a large one the digits of the rest would be lost.
Edges: a row of −∞ alone has lse −∞; a label outside counts as the logit 0, without a gradient.
After Wijmans et al., Cut your losses in large-vocabulary language models, 2024, without its filtering.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pullback.define import custom_gradient
from pullback.namespace import namespace
from pullback.ops.linear.kernels import Array, Kernels, kernels_of


def capped(z: Array, cap: float | None) -> Array:
    """Bend logits into (−cap, cap)."""
    return z if cap is None else cap * namespace(z).tanh(z / cap)


def uncapped(g: Array, z: Array, cap: float | None) -> Array:
    """Pull a cotangent of bent logits back to the straight ones."""
    return g if cap is None else g * (1 - (z / cap) * (z / cap))


def logits(k: Kernels, x: Array, w: Array, bias: Array | None, cap: float | None) -> Array:
    """Compute the logits of some rows and some classes."""
    z = k.product(x, w)
    return capped(z if bias is None else z + k.wide(bias), cap)


class Running(NamedTuple):
    """A log-sum-exp under way: the largest so far, and the sum of the others relative to it."""

    top: Array
    total: Array

    def after(self, xp: Any, z: Array) -> Running:
        """Go on with some more columns."""
        higher = xp.maximum(self.top, xp.max(z, axis=1))
        level = finite(xp, higher)
        here = xp.sum(xp.exp(z - level[:, None]), axis=1)
        return Running(higher, self.total * xp.exp(self.top - level) + here)

    def level_and_rest(self, xp: Any) -> tuple[Array, Array]:
        """Give two numbers whose sum is the log-sum-exp; added up, the second one may lose its digits."""
        return finite(xp, self.top), xp.log(self.total)


def finite(xp: Any, top: Array) -> Array:
    """Give the largest logit, 0 in a row that has none."""
    return xp.where(xp.isfinite(top), top, xp.zeros_like(top))


@custom_gradient
def row_sums(
    x: Array, w: Array, bias: Array | None, labels: Array, *, cap: float | None, spread: bool, chunk: int
) -> Any:
    """Give lse and surprise, and the spread if it is asked for, one of each a row."""
    k, xp = kernels_of(x), namespace(x)

    def part(start: Any, size: Any) -> tuple[Array, Array | None, Array]:
        ws, bs = k.rows(w, start, size), None if bias is None else k.rows(bias, start, size)
        return ws, bs, logits(k, x, ws, bs, cap)

    def look(start: Any, size: Any, carry: Any) -> Any:
        top, total, target, *sums = carry
        z = part(start, size)[2]
        target = target + k.picked(z, labels, start)
        return (*Running(top, total).after(xp, z), target, *(s + xp.sum(z, axis=1) for s in sums)), ()

    zero = k.zeros(x)
    carry = (zero - np.inf, zero, zero, *([zero] if spread else []))
    (top, total, target, *sums), _ = k.fold(k.length(w), chunk, look, carry)
    level, rest = Running(top, total).level_and_rest(xp)
    count = k.length(w)
    count = count if isinstance(count, int) else xp.astype(count, zero.dtype)
    outputs = (level + rest, rest - (target - level), *(rest - (s / count - level) for s in sums))

    def grad(*cotangents: Array) -> Any:
        a, b, *c = cotangents
        # the rest of the log-sum-exp goes with the factor of the row: one pass over the logits less
        factor = ((a + b + c[0] if c else a + b) * xp.exp(-rest))[:, None]

        def pull(start: Any, size: Any, carry: Any) -> Any:
            ws, _, z = part(start, size)
            g = factor * xp.exp(z - level[:, None])
            if c:
                g = g - (c[0] / count)[:, None]
            g = uncapped(k.add_picked(g, labels, start, -b), z, cap)
            (dx,) = carry
            blocks = (k.across(g, x), *([] if bias is None else [xp.sum(g, axis=0)]))
            return (dx + k.into(g, ws),), blocks

        likes = (w,) if bias is None else (w, bias)
        (dx,), blocks = k.fold(k.length(w), chunk, pull, (xp.zeros_like(k.wide(x)),), likes)
        return {"x": dx, "w": blocks[0], **({} if bias is None else {"bias": blocks[1]})}

    return outputs, grad
