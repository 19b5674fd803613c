"""Attention over some queries at a time: of the scores a chunk is held, never the square of the length.

    z = s·q kᵀ + bias     m = max z     e = e^(z − m)     l = Σ e     o = e v / l
    do given:   u = do / l     Δ = Σ u∘o     dv = eᵀ u     dz = e∘(u vᵀ − Δ)     dq = s·dz k     dk = s·dzᵀ q

Kept: q, k, v, o, m and l, two numbers a query: in m + log l a large m would cost the digits of l. The scores
of a chunk are computed again, and l goes with the small arrays. The pullback is made of ordinary operations,
so higher orders are derived. Scores and sums are of float32 at least.

Domain: finite scores. Edges: a query that sees no key gives 0, with gradients 0; hidden scores are −∞.
After M. Rabe and C. Staats, Self-attention does not need O(n²) memory, 2021, and T. Dao et al.,
FlashAttention, 2022.
"""

from __future__ import annotations

from typing import Any

from pullback.define import custom_gradient
from pullback.namespace import namespace
from pullback.ops.linear.kernels import kernels_of


@custom_gradient
def chunked(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, *, groups: int, causal: bool, scale: float, chunk: int
) -> Any:
    """Attend, a chunk of queries at a time.

    Queries come first: q is (S, N, G, d), k and v are (N, T, d), where G heads of queries share one of the N
    heads of keys, of all batches. Masks and biases are (S or 1, N or 1, G or 1, T or 1).
    """
    xp, kernels = namespace(q), kernels_of(q)
    count, t = kernels.length(q), int(k.shape[1])
    many = -1 if k.shape[0] is None else int(k.shape[0])
    keys, values = kernels.wide(k), kernels.wide(v)
    columns = xp.arange(t, dtype=xp.int32)

    def flat(a: Any, size: Any) -> Any:
        """(c, N, G, d) → (N, c·G, d)"""
        return xp.reshape(turned(a), (many, size * groups, int(a.shape[-1])))

    def deep(a: Any, size: Any) -> Any:
        """(N, c·G, d) → (c, N, G, d)"""
        return turned(xp.reshape(a, (many, size, groups, int(a.shape[-1]))))

    def turned(a: Any) -> Any:
        """(c, N, G, d) ↔ (N, c, G, d)"""
        return xp.permute_dims(a, (1, 0, 2, 3))

    def split(a: Any, size: Any) -> Any:
        """(N, c·G, T) → (N, c, G, T): scores stay where the products left them"""
        return xp.reshape(a, (many, size, groups, t))

    def merged(a: Any, size: Any) -> Any:
        """(N, c, G, T) → (N, c·G, T)"""
        return xp.reshape(a, (many, size * groups, t))

    def part(a: Any, start: Any, size: Any) -> Any:
        return turned(a if a.shape[0] == 1 else kernels.rows(a, start, size))

    def scores(start: Any, size: Any) -> tuple[Any, Any]:
        """Give the queries of a chunk, times the scale, and (N, c, G, T): their scores."""
        rows = flat(kernels.wide(kernels.rows(q, start, size)), size) * scale
        z = split(rows @ xp.matrix_transpose(keys), size)
        if bias is not None:
            z = z + kernels.wide(part(bias, start, size))
        if mask is not None:
            z = xp.where(part(mask, start, size), z, xp.full_like(z, -xp.inf))
        if causal:
            seen = columns[None, :] <= (xp.arange(size, dtype=xp.int32) + start)[:, None]
            z = xp.where(seen[:, None, :], z, xp.full_like(z, -xp.inf))
        return rows, z

    def attend(start: Any, size: Any, carry: Any) -> Any:
        _, z = scores(start, size)
        top = xp.max(z, axis=-1, keepdims=True) if t else xp.sum(z, axis=-1, keepdims=True) - xp.inf
        top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
        e = kernels.exponentials(z, top)
        total = xp.sum(e, axis=-1, keepdims=True)
        total = xp.where(total > 0, total, xp.ones_like(total))
        total = turned(total)
        return carry, (deep(merged(e, size) @ values, size) / total, turned(top), total)

    like = kernels.wide(q)
    rows_of_v = like[..., :1] * 0 + xp.zeros((int(v.shape[-1]),), dtype=like.dtype)
    _, (out, tops, totals) = kernels.fold(count, chunk, attend, (), (rows_of_v, like[..., :1], like[..., :1]))

    def grad(dout: Any) -> Any:
        def pull(start: Any, size: Any, carry: Any) -> Any:
            rows, z = scores(start, size)
            dk, dv, *db = carry
            top, total, o = (kernels.rows(a, start, size) for a in (tops, totals, out))
            e = kernels.exponentials(z, turned(top))
            u = kernels.wide(kernels.rows(dout, start, size)) / total
            delta = turned(xp.sum(u * o, axis=-1, keepdims=True))
            u = flat(u, size)
            dv = dv + xp.matrix_transpose(u) @ merged(e, size)  # of the two, the small one is turned
            dz = kernels.slopes(e, split(u @ xp.matrix_transpose(values), size), delta)
            flattened = merged(dz, size)
            dk = dk + xp.matrix_transpose(rows) @ flattened
            blocks = [deep(flattened @ keys * scale, size)]
            if bias is not None:
                summed = turned(_summed(xp, dz, bias, whole=bias.shape[0] == 1))
                blocks += [] if db else [summed]
                db = [db[0] + summed] if db else []
            return (dk, dv, *db), tuple(blocks)

        alone = (
            bias is not None and bias.shape[0] == 1
        )  # the same bias for all queries: a sum over the chunks
        carry = (
            *(xp.matrix_transpose(a) * 0 for a in (keys, values)),
            *([kernels.wide(bias) * 0] if alone else []),
        )
        likes = (like, *([kernels.wide(bias)] if bias is not None and not alone else []))
        (dk, dv, *db), (dq, *rest) = kernels.fold(count, chunk, pull, carry, likes)
        found = {"q": dq, "k": xp.matrix_transpose(dk), "v": xp.matrix_transpose(dv)}
        return found if bias is None else {**found, "bias": (*db, *rest)[0]}

    return xp.astype(out, q.dtype), grad


def _summed(xp: Any, dz: Any, bias: Any, *, whole: bool) -> Any:
    """Sum over the axes along which a bias was broadcast; queries come first in it, and second in dz."""
    shape = (bias.shape[1], bias.shape[2], bias.shape[3])
    axes = [axis for axis, n in zip((0, 2, 3), shape) if n == 1 and dz.shape[axis] != 1]
    axes = [1, *axes] if whole else axes
    return xp.sum(dz, axis=tuple(axes), keepdims=True) if axes else dz
