"""PyTorch: chunks in a loop of Python, written in place into results that are made once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pullback import hosts
from pullback.ops.linear import plain
from pullback.ops.linear.kernels import Carry, Folded, Step
from pullback.ops.linear.plain import after as after
from pullback.ops.linear.plain import pieces as pieces

HELD = 2**24  # with half of it, the sum of dw costs a fifth of the step


def adds_in_place(w: Any) -> bool:
    return _is_fast(w) or wide(w[:0]).dtype == w.dtype


def wide(a: Any) -> Any:
    return a.to(torch.promote_types(a.dtype, torch.float32))


def index(labels: Any) -> Any:
    return labels.long()


def numbered(a: Any) -> Any:
    return torch.arange(len(a), device=a.device)


def zeros(x: Any) -> Any:
    return x.new_zeros(x.shape[:1], dtype=torch.promote_types(x.dtype, torch.float32))


def fold(count: Any, size: int, step: Step, carry: Carry, likes: Sequence[Any] = ()) -> Folded:
    made: list[Any] = []
    for start in range(0, max(count, 1), size):
        stop = min(start + size, count)
        carry, blocks = step(start, stop - start, carry)
        if not made:  # of the first blocks: a batch of blocks makes a batch of results
            shapes = [(count, *like.shape[1:]) for like in likes]
            made = [b.new_empty(shape, dtype=a.dtype) for a, b, shape in zip(likes, blocks, shapes)]
        for a, block in zip(made, blocks):
            a[start:stop] = block
    return carry, tuple(made)


def rows(a: Any, start: int, size: int) -> Any:
    return a[start : start + size]


def length(a: Any) -> int:
    return int(a.shape[0])


def _operands(a: Any, b: Any) -> tuple[Any, Any]:
    """Widen what a product is of, unless a GPU is fast at a dtype that no logit is too large for."""
    return (a.to(b.dtype), b) if _is_fast(b) else (wide(a), wide(b))


def product(a: Any, b: Any) -> Any:
    a, b = _operands(a, b)
    return wide(a @ b.T)


def into(g: Any, w: Any) -> Any:
    g, w = _operands(g, w)
    return wide(g @ w)


def across(g: Any, x: Any) -> Any:
    g, x = _operands(g, x)
    return wide(g.T @ x)


def _free(*tensors: Any) -> bool:
    """Tell whether nobody records what is done to these, so that they may be written over."""
    return not any(tensor.requires_grad for tensor in tensors)


def _is_mine(*tensors: Any) -> bool:
    """Tell whether these lie near the processor, and nobody records, compiles or transforms."""
    return tensors[0].device.type == "cpu" and _free(*tensors) and hosts.of(tensors[0]).idle(tensors)


def _is_fast(a: Any) -> bool:
    """Tell whether a GPU is fast at a dtype that no logit is too large for."""
    return bool(a.is_cuda and a.dtype is torch.bfloat16)


def room(x: Any, w: Any, size: int) -> Any | None:
    """A chunk of memory that is asked for anew comes page by page from the system: as slow as a softmax."""
    if not _is_mine(x, w) or x.dtype != w.dtype or wide(x[:0]).dtype != x.dtype:
        return None
    return x.new_empty(min(size, len(x)), len(w))


def raw_product(a: Any, b: Any, bias: Any | None, room: Any | None) -> Any:
    a, b = _operands(a, b)
    out = None if room is None else room[: len(a)]
    if bias is None:
        return torch.mm(a, b.T, out=out)
    return torch.addmm(bias.to(a.dtype), a, b.T, out=out)


def sums_of(w: Any) -> Any:
    return torch.empty_like(w if _is_fast(w) else wide(w))


def added(dw: Any, g: Any, x: Any, start: Any) -> Any:
    if dw.dtype == g.dtype == x.dtype and _free(dw, g, x):
        return dw.addmm_(g.T, x, beta=0 if start == 0 else 1)
    return across(g, x) if start == 0 else dw + across(g, x)


def times(dy: Any, parts: Sequence[Any]) -> list[Any]:
    # A loss that nobody scales. A GPU is waited for here, once, and that is less than to scale a matrix.
    if _free(dy, *parts) and hosts.of(dy).idle([dy]) and dy == 1:
        return list(parts)
    return [dy * (part if _is_fast(part) else wide(part)) for part in parts]


def fused(z: Any, labels: Any, **options: Any) -> tuple[Any, list[Any], None] | None:
    if not z.is_cuda or z.dtype is torch.float64 or not _free(z) or not hosts.of(z).idle([z]):
        return None
    try:
        from pullback.ops.linear import triton
    except ModuleNotFoundError as error:  # PyTorch is there without it
        if error.name != "triton":
            raise
        return None
    losses, g = triton.loss_and_slopes(z, labels, **options)
    return losses, [g], None


def softmax(zs: list[Any], level: Any) -> tuple[list[Any], Any | None, Any]:
    (z,) = zs
    if _is_mine(z, level):
        p = torch.softmax(z, 1, out=z)  # row by row: a row stays near the processor
        return [p], None, -torch.log(p.amax(1))
    if not _free(z, level):
        return plain.softmax(zs, level)
    e = z.sub_(level[:, None]).exp_()
    total = e.sum(1)
    return [e], total, torch.log(total)


def _is_over(*tensors: Any) -> bool:
    """Tell whether nobody records or transforms these, so that they may be written over where they are."""
    return _free(*tensors) and hosts.of(tensors[0]).idle(tensors)


def exponentials(z: Any, level: Any) -> Any:
    # what is asked for anew comes page by page from the system, as slow as what is done to it
    return z.sub_(level).exp_() if _is_over(z, level) else plain.exponentials(z, level)


def slopes(e: Any, t: Any, total: Any) -> Any:
    if not _is_over(e, t, total):
        return plain.slopes(e, t, total)
    return t.mul_(e).addcmul_(e, t.sum(-1, keepdim=True) / total, value=-1)


def weighed(x: Any, c: Any) -> Any:
    if not _is_fast(x) or not _free(x, c) or not hosts.of(x).idle([x, c]):
        return (wide(x) * c[:, None]).to(x.dtype if _is_fast(x) else c.dtype)
    return torch.mul(x, c[:, None], out=torch.empty_like(x))  # in float32, and nothing of it is held


def scaled(e: Any, factors: Any) -> Any:
    return e.mul_(factors[:, None]) if _free(e, factors) else e * factors[:, None]


def _inside(z: Any, places: Any) -> tuple[Any, Any]:
    """Give an index that every row has, and where it is the place that was meant."""
    return places.clamp(0, z.shape[1] - 1)[:, None], (places >= 0) & (places < z.shape[1])


def picked(z: Any, labels: Any, start: Any) -> Any:
    index, inside = _inside(z, labels - start)
    return torch.where(inside, z.gather(1, index)[:, 0], 0)


def add_picked(z: Any, labels: Any, start: Any, values: Any) -> Any:
    index, inside = _inside(z, labels - start)
    values = torch.where(inside, values, 0)[:, None]
    return z.scatter_add_(1, index, values) if _free(z, values) else z.scatter_add(1, index, values)


def assert_none(bad: Any, text: str) -> None:
    """A GPU is not waited for."""


def is_near(x: Any) -> bool:
    return bool(x.device.type == "cpu")
