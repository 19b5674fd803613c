"""Attention over some queries of some heads at a time: of the scores a chunk is held, and never all.

    z = s·q kᵀ + bias     m = max z     e = e^(z − m)     l = Σ e     o = e v / l
    do given:   u = do / l     t = u vᵀ     Δ = Σ e∘t / l     dz = e∘(t − Δ)
                dv = eᵀ u     dq = s·dz k     dk = s·dzᵀ q

Kept: q, k and v. The scores of a chunk are computed again, and l goes with the small arrays. The pullback is
made of ordinary operations, so higher orders are derived. Scores and sums are of float32 at least. Δ is
Σ do∘o, too, and m and l could be kept; but that would be rounded by itself: where one key takes it all, t − Δ
is 0, and must not be what is left of two roundings.

Domain: finite scores. Edges: a query that sees no key gives 0, with gradients 0; hidden scores are −∞.
After M. Rabe and C. Staats, Self-attention does not need O(n²) memory, 2021, and T. Dao et al.,
FlashAttention, 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pullback.define import custom_gradient
from pullback.namespace import namespace
from pullback.ops.linear.kernels import kernels_of


@custom_gradient
def chunked(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    bias: Any,
    *,
    groups: int,
    causal: bool,
    scale: float,
    chunk: int,
    heads: int,
) -> Any:
    """Attend, for some heads of keys after the others, a chunk of queries at a time.

    q is (N, S, G, d), k and v are (N, T, d): G heads of queries share one of the N heads of keys, of all
    batches. Masks and biases are (N or 1, S or 1, G or 1, T or 1).
    """
    xp, kernels = namespace(q), kernels_of(q)
    count, length = kernels.length(k), int(q.shape[1])

    def some(first: Any, size: Any) -> _Heads:
        def part(a: Any) -> Any:
            return a if a is None or a.shape[0] == 1 else kernels.rows(a, first, size)

        queries, masked, biased = (None if a is None else turned(part(a)) for a in (q, mask, bias))
        keys, values = (kernels.wide(kernels.rows(a, first, size)) for a in (k, v))
        return _Heads(queries, keys, values, masked, biased, groups=groups, causal=causal, scale=scale)

    def turned(a: Any) -> Any:
        """(N, S, G, d) ↔ (S, N, G, d)"""
        return xp.permute_dims(a, (1, 0, 2, 3))

    def like(q: Any) -> Any:
        """Give an array with the shape of the result for these queries."""
        one = kernels.wide(q)[..., :1]
        return one * 0 + xp.zeros((int(v.shape[-1]),), dtype=one.dtype)

    def attend(first: Any, size: Any, carry: Any) -> Any:
        part = some(first, size)
        _, (found,) = kernels.fold(length, chunk, part.attend, (), (like(part.q),))
        return carry, (turned(found),)

    _, (out,) = kernels.fold(count, heads, attend, (), (like(q),))

    def grad(dout: Any) -> Any:
        def pull(first: Any, size: Any, carry: Any) -> Any:
            part = some(first, size)
            slope = turned(kernels.rows(dout, first, size))

            def pulled(start: Any, size: Any, carry: Any) -> Any:
                return part.pull(start, size, carry, kernels.rows(slope, start, size))

            zero = (xp.matrix_transpose(a) * 0 for a in (part.k, part.v))
            wide = [] if bias is None else [kernels.wide(part.bias)]
            same = bias is not None and bias.shape[1] == 1  # for all queries: a sum over the chunks
            carries, parts = (wide, []) if same else ([], wide)
            (dk, dv, *sums), (dq, *rest) = kernels.fold(
                length, chunk, pulled, (*zero, *(b * 0 for b in carries)), (kernels.wide(part.q), *parts)
            )
            db = [turned(b) for b in (*sums, *rest)]
            blocks = (turned(dq), xp.matrix_transpose(dk), xp.matrix_transpose(dv))
            return (tuple(a + b for a, b in zip(carry, db)), blocks) if carry else ((), (*blocks, *db))

        wide = [] if bias is None else [kernels.wide(bias)]
        shared = bias is not None and bias.shape[0] == 1
        carries, parts = (wide, []) if shared else ([], wide)
        inputs = (kernels.wide(a) for a in (q, k, v))
        sums, (dq, dk, dv, *rest) = kernels.fold(
            count, heads, pull, tuple(b * 0 for b in carries), (*inputs, *parts)
        )
        found = {"q": dq, "k": dk, "v": dv}
        return found if bias is None else {**found, "bias": (*sums, *rest)[0]}

    return xp.astype(out, q.dtype), grad


@dataclass(frozen=True)
class _Heads:
    """Some heads of keys and all queries that look at them, which come first: q is (S, N, G, d)."""

    q: Any
    k: Any
    v: Any
    mask: Any
    bias: Any
    groups: int
    causal: bool
    scale: float

    @property
    def xp(self) -> Any:
        return namespace(self.q)

    @property
    def kernels(self) -> Any:
        return kernels_of(self.q)

    @property
    def many(self) -> int:
        return -1 if self.k.shape[0] is None else int(self.k.shape[0])

    def turned(self, a: Any) -> Any:
        """(N, c, G, d) ↔ (c, N, G, d)"""
        return self.xp.permute_dims(a, (1, 0, 2, 3))

    def flat(self, a: Any, size: Any) -> Any:
        """(c, N, G, d) → (N, c·G, d)"""
        return self.merged(self.turned(a), size)

    def deep(self, a: Any, size: Any) -> Any:
        """(N, c·G, d) → (c, N, G, d)"""
        return self.turned(self.split(a, size))

    def split(self, a: Any, size: Any) -> Any:
        """(N, c·G, T) → (N, c, G, T): scores stay where the products left them"""
        return self.xp.reshape(a, (self.many, size, self.groups, int(a.shape[-1])))

    def merged(self, a: Any, size: Any) -> Any:
        """(N, c, G, T) → (N, c·G, T)"""
        return self.xp.reshape(a, (self.many, size * self.groups, int(a.shape[-1])))

    def part(self, a: Any, start: Any, size: Any) -> Any:
        return self.turned(a if a.shape[0] == 1 else self.kernels.rows(a, start, size))

    def weights(self, start: Any, size: Any) -> tuple[Any, Any, Any]:
        """Give the queries of a chunk, times the scale, and (N, c, G, T): exponentials, and their sums."""
        xp, kernels, keys = self.xp, self.kernels, int(self.k.shape[1])
        rows = self.flat(kernels.wide(kernels.rows(self.q, start, size)), size) * self.scale
        z = self.split(rows @ xp.matrix_transpose(self.k), size)
        if self.bias is not None:
            z = z + kernels.wide(self.part(self.bias, start, size))
        if self.mask is not None:
            z = xp.where(self.part(self.mask, start, size), z, xp.full_like(z, -xp.inf))
        if self.causal:
            columns = xp.arange(keys, dtype=xp.int32)
            seen = columns[None, :] <= (xp.arange(size, dtype=xp.int32) + start)[:, None]
            z = xp.where(seen[:, None, :], z, xp.full_like(z, -xp.inf))
        top = xp.max(z, axis=-1, keepdims=True) if keys else xp.sum(z, axis=-1, keepdims=True) - xp.inf
        e = kernels.exponentials(z, xp.where(xp.isfinite(top), top, xp.zeros_like(top)))
        total = xp.sum(e, axis=-1, keepdims=True)
        return rows, e, xp.where(total > 0, total, xp.ones_like(total))

    def attend(self, start: Any, size: Any, carry: Any) -> Any:
        """Give the values of some queries."""
        _, e, total = self.weights(start, size)
        return carry, (self.deep(self.merged(e, size) @ self.v, size) / self.turned(total),)

    def pull(self, start: Any, size: Any, carry: Any, dout: Any) -> Any:
        """Add to dkᵀ, dvᵀ, and the slopes of a bias that all queries share; give the other slopes."""
        xp, kernels = self.xp, self.kernels
        rows, e, total = self.weights(start, size)
        dk, dv, *db = carry
        u = self.flat(kernels.wide(dout) / self.turned(total), size)
        dv = dv + xp.matrix_transpose(u) @ self.merged(e, size)  # of the two, the small one is turned
        dz = kernels.slopes(e, self.split(u @ xp.matrix_transpose(self.v), size), total)
        flattened = self.merged(dz, size)
        dk = dk + xp.matrix_transpose(rows) @ flattened
        blocks = [self.deep(flattened @ self.k * self.scale, size)]
        if self.bias is not None:
            summed = self.turned(_summed(xp, dz, self.bias, whole=bool(db)))
            blocks += [] if db else [summed]
            db = [b + summed for b in db]
        return (dk, dv, *db), tuple(blocks)


def _summed(xp: Any, dz: Any, bias: Any, *, whole: bool) -> Any:
    """Sum over the axes along which a bias was broadcast; queries come first in it, and second in dz."""
    shape = (bias.shape[1], bias.shape[2], bias.shape[3])
    axes = [axis for axis, n in zip((0, 2, 3), shape) if n == 1 and dz.shape[axis] != 1]
    axes = [1, *axes] if whole else axes
    return xp.sum(dz, axis=tuple(axes), keepdims=True) if axes else dz
