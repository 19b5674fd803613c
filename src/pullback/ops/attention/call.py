"""`attention`: what users call. Shapes are read here; masks and groups are laid out for the rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import hosts
from pullback.errors import OptionError, UnsupportedInputError
from pullback.example import example
from pullback.namespace import namespace
from pullback.ops.attention.chunked import chunked
from pullback.ops.linear import chunks
from pullback.ops.linear.kernels import kernels_of
from pullback.ops.whole import whole
from pullback.options import require_number
from pullback.typed import carrying

_Q, _K, _V = (np.cos(np.arange(start, start + 8.0)).reshape(1, 4, 2) for start in (0, 3, 7))


@whole
@carrying(chunked.rule)
@example(_Q, _K, _V, chunk=2)
@example(_Q, _K, _V, causal=True, bias=np.sin(np.arange(16.0)).reshape(4, 4), chunk=3)
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    mask: Any = None,
    bias: Any = None,
    scale: float | None = None,
    chunk: int | None = None,
) -> Any:
    """Attend to values by the likeness of queries and keys, without ever holding all scores.

    Exact, and of any order of derivative. A query that sees no key gives zeros, and no gradient. PyTorch's
    own fused kernel, `scaled_dot_product_attention`, is used where there is neither mask nor bias nor
    `chunk`, and outside of `torch.func` and forward mode: it is faster, and PyTorch refuses its second
    derivative; give `chunk` for one.

    Args:
        q: Queries, (…, heads, S, d).
        k: Keys, (…, heads, T, d). Their heads may be fewer, if they divide those of the queries.
        v: Values, (…, heads, T, e).
        causal: Whether query i sees the keys up to the i-th only.
        mask: Booleans that are broadcast to (…, heads, S, T): which keys a query sees.
        bias: Numbers that are broadcast to (…, heads, S, T), and added to the scores. They get a gradient.
        scale: What scores are multiplied by; 1/√d if nothing is said.
        chunk: How many queries are looked at together; by default what a cache likes.

    Example:
        >>> import numpy as np, pullback as pb
        >>> x = np.eye(2)[None]
        >>> pb.ops.attention(x, x, x, causal=True)[0, 0].tolist()
        [1.0, 0.0]

    Do not use it for a few hundred keys: the scores fit into memory, and plain products are as fast.
    """
    xp = namespace(q, k, v)
    lead, heads, s, d, t = _read(q, k, v)
    mask, bias = _tensor(q, mask, "mask"), _tensor(q, bias, "bias")
    groups = heads // int(k.shape[-3])
    require_number("attention", "scale", scale, least=-math.inf, fix="scale=0.125")
    scale = 1 / math.sqrt(d) if scale is None else scale
    if chunk is None and mask is None and bias is None:
        fused = hosts.of(q).fused.get("attention")
        found = None if fused is None else fused.value(q, k, v, causal, scale, groups)
        if found is not None:
            return found
    if mask is not None and "bool" not in str(mask.dtype):
        raise OptionError.about(
            "attention",
            found=f"a mask of {mask.dtype}",
            expected="booleans: which keys are seen",
            why="numbers that are added to the scores are a bias",
            fix="bias=mask",
        )
    batch = math.prod(lead) if None not in lead else -1
    keys = int(k.shape[-3])
    queries = xp.reshape(q, (-1 if batch < 0 else batch * keys, groups, s, d))
    size, together = chunks.queries_of("attention", chunk, groups * t, s, near=kernels_of(q).is_near(q))
    laid = [
        None if a is None else _laid(xp, a, name, (*lead, heads, s, t), groups)
        for name, a in (("mask", mask), ("bias", bias))
    ]
    out = chunked(
        xp.permute_dims(queries, (0, 2, 1, 3)),
        xp.reshape(k, (-1, t, d)),
        xp.reshape(v, (-1, t, int(v.shape[-1]))),
        *laid,
        groups=groups,
        causal=bool(causal),
        scale=float(scale),
        chunk=size,
        heads=together,
    )
    shape = (*(-1 if n is None else n for n in lead), heads, s, int(v.shape[-1]))
    return xp.reshape(xp.permute_dims(out, (0, 2, 1, 3)), shape)


def _read(q: Any, k: Any, v: Any) -> tuple[tuple[Any, ...], int, int, int, int]:
    """Give the leading axes, the heads, both lengths and the depth; refuse shapes that do not fit."""
    kinds = [hosts.of(a).spec(a) for a in (q, k, v)]
    if any(spec.kind != "floating" for spec in kinds):
        raise UnsupportedInputError.about(
            "attention",
            found="q, k and v of dtypes " + ", ".join(spec.dtype for spec in kinds),
            expected="real floating numbers",
            fix="q of float32",
        )
    shapes = [tuple(a.shape) for a in (q, k, v)]
    ranks = {len(shape) for shape in shapes}
    fits = len(ranks) == 1 and min(ranks) >= 3
    if fits:
        (*lead, heads, s, d), (*lead_k, heads_k, t, d_k), (*lead_v, heads_v, t_v, e) = shapes
        fits = lead == lead_k == lead_v and d == d_k and (heads_k, t) == (heads_v, t_v)
        fits = fits and None not in (heads, heads_k, s, t, d, e) and heads_k > 0 and heads % heads_k == 0
        fits = fits and sum(n is None for n in lead) <= 1
    if not fits:
        raise UnsupportedInputError.about(
            "attention",
            found="q, k and v of shapes " + ", ".join(str(shape) for shape in shapes),
            expected="(…, heads, S, d), (…, heads, T, d) and (…, heads, T, e), where the heads of k and v "
            "divide those of q, and all lengths but one of a batch are known",
            fix="xp.permute_dims(q, (0, 2, 1, 3)) for a q of (batch, S, heads, d)",
        )
    return tuple(lead), heads, s, d, t


def _tensor(q: Any, value: Any, name: str) -> Any:
    """Make a mask or a bias a tensor of the framework of the queries."""
    return None if value is None else hosts.of(q).tensor(value, where="attention", argument=name)


def _laid(xp: Any, a: Any, name: str, shape: tuple[Any, ...], groups: int) -> Any:
    """Lay a mask or a bias out as (N or 1, S or 1, G or 1, T or 1)."""
    have = (1,) * (len(shape) - len(a.shape)) + tuple(a.shape)
    if len(have) != len(shape) or any(n not in (1, m) for n, m in zip(have, shape)):
        raise UnsupportedInputError.about(
            "attention",
            found=f"a {name} of shape {tuple(a.shape)}",
            expected=f"one that is broadcast to {shape}",
            fix=f"{name}[:, None] for one that has no axis of heads",
        )
    *lead, heads, s, t = have
    whole, keys = shape[:-3], shape[-3] // groups
    # Batches and heads of keys become one axis: it is broadcast as a whole, or not at all.
    group = 1 if heads == 1 else groups
    if all(n == 1 for n in lead) and heads == 1:
        return xp.permute_dims(xp.reshape(a, (1, 1, s, t)), (0, 2, 1, 3))
    parts = xp.reshape(a, (*lead, 1 if heads == 1 else keys, group, s, t))
    full = xp.broadcast_to(parts, (*whole, keys, group, s, t))
    return xp.permute_dims(xp.reshape(full, (-1, group, s, t)), (0, 2, 1, 3))
