"""How far two distributions over the vocabulary are apart, row by row, in chunks of it: for distillation.

    uᵢⱼ = log softmax of the student's logits x·wᵀ + b,   vᵢⱼ = that of the teacher's
    Dᵢ = Σⱼ f(uᵢⱼ, vᵢⱼ)

    forward KL    f = eᵛ·(v − u)                                      f′ = −eᵛ
    reverse KL    f = eᵘ·(u − v)                                      f′ = eᵘ·(u − v + 1)
    JS            f = β·eᵛ·(v − m) + (1 − β)·eᵘ·(u − m)               f′ = (1 − β)·eᵘ·(u − m)
                  m = log(β·eᵛ + (1 − β)·eᵘ)

f′ is the derivative by u; in the last one that of m falls out. With Fᵢ = Σⱼ f′, for a cotangent a of D:

    gᵢⱼ = aᵢ·(f′ − eᵘ·Fᵢ),   dx = g·w,   dw = gᵀ·x,   db = Σᵢ g

A first pass gives both log-sum-exps, a second one D and F; the pullback is a third. The teacher is constant.
Edges: where a distribution is 0, its term is 0; forward KL is ∞ where the student alone is 0.
After Hsu et al., Liger kernel, 2024, and Agarwal et al., On-policy distillation of language models, 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.namespace import namespace
from pullback.ops.linear.kernels import Array, kernels_of
from pullback.ops.linear.streamed import Running, logits

Terms = Callable[[Any, Array, Array, float], "tuple[Array, Array]"]  # (xp, u, v, β) ↦ f and f′


def _forward_kl(xp: Any, u: Array, v: Array, beta: float) -> tuple[Array, Array]:
    q = xp.exp(v)
    return _term(xp, q, v, u), -q


def _reverse_kl(xp: Any, u: Array, v: Array, beta: float) -> tuple[Array, Array]:
    p = xp.exp(u)
    f = _term(xp, p, u, v)
    return f, f + p


def _js(xp: Any, u: Array, v: Array, beta: float) -> tuple[Array, Array]:
    q, p = xp.exp(v), xp.exp(u)
    mixed = beta * q + (1 - beta) * p
    m = xp.log(xp.where(mixed > 0, mixed, xp.ones_like(mixed)))
    slope = (1 - beta) * _term(xp, p, u, m)
    return beta * _term(xp, q, v, m) + slope, slope


def _term(xp: Any, p: Array, a: Array, b: Array) -> Array:
    zero = xp.zeros_like(p)
    return p * (xp.where(p > 0, a, zero) - xp.where(p > 0, b, zero))


TERMS: dict[str, Terms] = {"forward": _forward_kl, "reverse": _reverse_kl, "js": _js}


@custom_gradient
def divergence(
    x: Array,
    w: Array,
    bias: Array | None,
    teacher_x: Array,
    teacher_w: Array,
    teacher_bias: Array | None,
    *,
    kind: str,
    beta: float,
    chunk: int,
) -> Any:
    """Give D, one number a row."""
    k, xp = kernels_of(x), namespace(x)
    terms = TERMS[kind]

    def student(start: Any, size: Any) -> tuple[Array, Array]:
        ws, bs = k.rows(w, start, size), None if bias is None else k.rows(bias, start, size)
        return logits(k, x, ws, bs, None), ws

    def teacher(start: Any, size: Any) -> Array:
        bs = None if teacher_bias is None else k.rows(teacher_bias, start, size)
        return logits(k, teacher_x, k.rows(teacher_w, start, size), bs, None)

    def look(start: Any, size: Any, carry: Any) -> Any:
        one, other = Running(*carry[:2]), Running(*carry[2:])
        return (*one.after(xp, student(start, size)[0]), *other.after(xp, teacher(start, size))), ()

    zero = k.zeros(x)
    low = zero - np.inf
    sums, _ = k.fold(k.length(w), chunk, look, (low, zero, low, zero))
    mine, theirs = Running(*sums[:2]).level_and_rest(xp), Running(*sums[2:]).level_and_rest(xp)

    def logs(start: Any, size: Any) -> tuple[Array, Array, Array]:
        z, ws = student(start, size)
        u = (z - mine[0][:, None]) - mine[1][:, None]
        return u, (teacher(start, size) - theirs[0][:, None]) - theirs[1][:, None], ws

    def add(start: Any, size: Any, carry: Any) -> Any:
        u, v, _ = logs(start, size)
        f, slope = terms(xp, u, v, beta)
        return (carry[0] + xp.sum(f, axis=1), carry[1] + xp.sum(slope, axis=1)), ()

    (apart, slopes), _ = k.fold(k.length(w), chunk, add, (zero, zero))

    def grad(a: Array) -> Any:
        def pull(start: Any, size: Any, carry: Any) -> Any:
            u, v, ws = logs(start, size)
            g = a[:, None] * (terms(xp, u, v, beta)[1] - xp.exp(u) * slopes[:, None])
            blocks = (k.across(g, x), *([] if bias is None else [xp.sum(g, axis=0)]))
            return (carry[0] + k.into(g, ws),), blocks

        likes = (w,) if bias is None else (w, bias)
        (dx,), blocks = k.fold(k.length(w), chunk, pull, (xp.zeros_like(k.wide(x)),), likes)
        return {"x": dx, **dict(zip(("w", "bias"), blocks))}

    return apart, grad
