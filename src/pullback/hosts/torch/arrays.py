"""Array functions in PyTorch, as `Arrays` in `hosts/base.py` says: for host-neutral rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from pullback.dtypes import COMPUTING, TABLE, WIDE
from pullback.hosts import refusals
from pullback.hosts.torch.private import is_batched, unseen

DTYPES = {name: getattr(torch, name) for name in TABLE if hasattr(torch, name)}
FLOATING = frozenset(DTYPES[name] for name in COMPUTING)  # what every call asks for
_WIDE = {dtype: DTYPES[WIDE[name]] for name, dtype in DTYPES.items() if name in WIDE}


def differentiable(tensor: Any) -> bool:
    """Tell whether a gradient can flow to a tensor."""
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


abs = torch.abs
argmax = torch.argmax
arctan = torch.arctan
clip = torch.clamp
erfc = torch.erfc
floor = torch.floor
isfinite = torch.isfinite
round = torch.round
sigmoid = torch.sigmoid
sign = torch.sign
softmax = torch.softmax
sqrt = torch.sqrt
tanh = torch.tanh
where = torch.where
zeros_like = torch.zeros_like


def maximum(x: Any, y: Any) -> Any:
    """Take the larger of two, element by element; one may be a number."""
    return torch.clamp(x, min=y) if isinstance(y, (int, float)) else torch.maximum(x, y)


def stop(x: Any) -> Any:
    """Cut a value off: no gradient goes through it."""
    return x.detach()


def cast(value: Any, like: Any) -> Any:
    return (
        value
        if isinstance(value, (int, float))
        else torch.as_tensor(value, device=like.device).to(like.dtype)
    )


def times(x: Any, weight: Any) -> Any:
    return torch.clamp(x, min=torch.finfo(x.dtype).min) * weight


def wide(x: Any) -> Any:
    return x.to(_WIDE.get(x.dtype, x.dtype))


def square_sum(x: Any, keep: int | None) -> Any:
    squares = torch.real(x * torch.conj(x)) if x.is_complex() else x * x
    if keep is None or x.ndim == 0:
        return torch.sum(squares)
    others = [i for i in range(x.ndim) if i != keep % x.ndim]
    return torch.sum(squares, others, keepdim=True) if others else squares


def one_hot(index: Any, like: Any, axis: int) -> Any:
    axis %= like.ndim
    places = torch.arange(like.shape[axis], device=index.device)
    places = places.reshape([-1 if i == axis else 1 for i in range(like.ndim)])
    return (places == index.unsqueeze(axis)).to(like.dtype)  # an index that is none has no one


def put(rows: Any, place: Any, x: Any) -> Any:
    """Put a tensor into the place of a row, in place where no transform sees it."""
    if unseen([rows, place, x]):
        rows[int(place)] = x
        return rows
    places = torch.arange(rows.shape[0], device=rows.device).unsqueeze(1)
    return torch.where(places == place, x, rows)


def first(rows: Any, place: Any) -> Any:
    """Give the rows before a place; all of them where a transform sees it."""
    return rows[: int(place)] if unseen([rows, place]) else rows


def shaped(x: Any, like: Any) -> Any:
    return x.reshape(like.shape)


def trail(x: Any, like: Any) -> Any:
    return x.reshape(tuple(x.shape) + (1,) * max(like.ndim - x.ndim, 0))


def held(inputs: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """Give the tensors as they are: PyTorch runs what it is told, and `torch.compile` chooses itself."""
    return list(inputs)


def report(bad: Any, text: str, counter: Any, result: Any) -> Any:
    """Add the number of places in `bad` to a counter; without one, say it on stderr in eager mode.

    A transform of `torch.func` says nothing: there the places have no values yet.
    """
    if counter is not None:
        if not isinstance(counter, torch.Tensor):
            raise refusals.counter(
                counter, "a tensor of an integer dtype", "torch.zeros((), dtype=torch.int64)"
            )
        counter += bad.sum().to(counter.dtype)
    elif not torch.compiler.is_compiling() and not is_batched(bad) and bad.any():
        print(f"{text}: {int(bad.sum())} of {bad.numel()} values", file=sys.stderr)
    return result
