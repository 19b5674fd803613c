"""Array functions in NumPy, as `Arrays` in `hosts/base.py` says: for host-neutral rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.dtypes import WIDE

abs = np.abs
argmax = np.argmax
arctan = np.arctan
clip = np.clip
floor = np.floor
isfinite = np.isfinite
maximum = np.maximum
round = np.round
sign = np.sign
sqrt = np.sqrt
tanh = np.tanh
where = np.where
zeros_like = np.zeros_like


def erfc(x: Any) -> Any:
    return np.vectorize(math.erfc, otypes=[float])(x).astype(x.dtype)


def sigmoid(x: Any) -> Any:
    """Give 1 / (1 + e⁻ˣ), without an overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def stop(x: Any) -> Any:
    """Give a value as it is: nobody differentiates it."""
    return x


def softmax(x: Any, axis: int = -1) -> Any:
    """Give numbers that are positive and sum to one along an axis."""
    e = np.exp(x - np.max(x, axis, keepdims=True))
    return e / np.sum(e, axis, keepdims=True)


def cast(value: Any, like: Any) -> Any:
    return value if isinstance(value, (int, float)) else np.asarray(value).astype(like.dtype)


def times(x: Any, weight: Any) -> Any:
    return np.maximum(x, np.finfo(x.dtype).min) * weight


def wide(x: Any) -> Any:
    return x.astype(WIDE.get(x.dtype.name, x.dtype), copy=False)


def square_sum(x: Any, keep: int | None) -> Any:
    squares = np.real(x * np.conj(x))
    if keep is None:
        return np.sum(squares)
    return np.sum(squares, tuple(i for i in range(x.ndim) if i != keep % x.ndim), keepdims=True)


def one_hot(index: Any, like: Any, axis: int) -> Any:
    places = np.arange(like.shape[axis]).reshape(
        [-1 if i == axis % like.ndim else 1 for i in range(like.ndim)]
    )
    return (places == np.expand_dims(index, axis)).astype(like.dtype)


def put(rows: Any, place: Any, x: Any) -> Any:
    """Put an array into the place of a row; the rows as they were are used up."""
    rows[int(place)] = x
    return rows


def first(rows: Any, place: Any) -> Any:
    """Give the rows before a place."""
    return rows[: int(place)]


def shaped(x: Any, like: Any) -> Any:
    return x.reshape(like.shape)


def trail(x: Any, like: Any) -> Any:
    return x.reshape(x.shape + (1,) * max(np.ndim(like) - np.ndim(x), 0))


def held(inputs: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """Give the arrays as they are: there is no compiler."""
    return list(inputs)


def report(bad: Any, text: str, counter: Any, result: Any) -> Any:
    """Give the result: there is no gradient to report on."""
    return result
