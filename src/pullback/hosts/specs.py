"""Shapes and dtypes of tensors, as every host describes them."""

from __future__ import annotations

from typing import NamedTuple

from pullback.dtypes import Kind
from pullback.errors import CotangentShapeError


class Spec(NamedTuple):
    """Describe a tensor: its shape (None where unknown), its dtype and the kind of number in it."""

    shape: tuple[int | None, ...] | None
    dtype: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.dtype} {'of unknown rank' if self.shape is None else show_shape(self.shape)}"


def show_shape(shape: tuple[int | None, ...]) -> str:
    """Write a shape as Python does, with ? for an unknown length."""
    lengths = ["?" if length is None else str(length) for length in shape]
    return f"({lengths[0]},)" if len(lengths) == 1 else f"({', '.join(lengths)})"


def same_shape(a: tuple[int | None, ...], b: tuple[int | None, ...]) -> bool:
    """Tell whether two shapes can be one, where None is a length that nobody knows."""
    return a == b or (len(a) == len(b) and all(m is None or n is None or m == n for m, n in zip(a, b)))


def broadcast_axes(big: tuple[int | None, ...], small: tuple[int | None, ...]) -> tuple[int, ...] | None:
    """List the axes of `big` along which `small` was broadcast; None when it cannot have been."""
    extra = len(big) - len(small)
    if extra < 0:
        return None
    axes = list(range(extra))
    for axis, (m, n) in enumerate(zip(big[extra:], small), start=extra):
        if n == 1 and m != 1:
            axes.append(axis)
        elif m is not None and n is not None and m != n:
            return None
    return tuple(axes)


def summed_axes(have: tuple[int, ...], want: tuple[int, ...]) -> tuple[int, ...]:
    """List the axes to sum a cotangent over; refuse one that was not broadcast."""
    axes = broadcast_axes(have, want)
    if axes is None:
        raise CotangentShapeError.about(
            "unbroadcast",
            found=f"dx has shape {show_shape(have)}, like has shape {show_shape(want)}",
            expected="a shape to which that of `like` broadcasts",
            fix="pass the input that was broadcast as like=",
        )
    return axes
