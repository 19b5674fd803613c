"""median: the middle value along an axis, or the mean of the two in the middle, with ties shared.

With l and h the two in the middle (one, if their number is odd):
    dxᵢ = ½·dy·(1 / n_l where xᵢ = l) + ½·dy·(1 / n_h where xᵢ = h)

Domain: every x with at least one value along the axis. Edges: where several values are equal to the one in
the middle, any division of 1 among them is a subgradient; it is even, which is declared. A NaN is the result
of what it is in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.errors import OptionError
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.kinks import kept, only, require_axes
from pullback.options import require_axis
from pullback.typed import T


def _middle(xp: Any, x: Any, axes: tuple[int, ...] | None) -> tuple[Any, Any]:
    """Give the two values in the middle, with the reduced axis in place."""
    flat, axis = (xp.reshape(x, (-1,)), 0) if axes is None else (x, axes[0])
    shape = hosts.of(flat).spec(flat).shape
    n = None if shape is None else shape[axis]
    if not n:
        raise OptionError.about(
            "median",
            found="no value along the axis" if n == 0 else "an axis of unknown length",
            expected="at least one value, and an axis of known length",
            fix="x.set_shape(…), or another axis",
        )
    y = xp.sort(flat, axis=axis)
    before = (slice(None),) * (axis % len(shape or ()))
    places = [(*before, slice(k, k + 1)) for k in ((n - 1) // 2, n // 2)]
    low, high = (y[place] for place in places)
    if axes is None:
        low, high = xp.reshape(low, ()), xp.reshape(high, ())
    return low, high


def _shares(xp: Any, x: Any, low: Any, high: Any, axes: tuple[int, ...] | None) -> Any:
    total = 0 * x
    for middle in (low, high):
        met = xp.astype(x == middle, x.dtype)
        total = total + 0.5 * met / xp.sum(met, axis=axes, keepdims=axes is not None)
    return total


def _chosen(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Values that are equal to one in the middle share it evenly."""
    xp = namespace(x)
    axes = require_axes("median", axis, x)
    low, high = _middle(xp, x, axes)
    several = xp.sum(xp.astype(x == low, x.dtype), axis=axes, keepdims=axes is not None) > 1
    return only(xp, several & (x == low) & (low == high), _shares(xp, x, low, high, axes), x)


@example(np.array([[0.7, -1.3, 2.1, 0.2], [0.4, 1.1, -0.2, 3.0]]), axis=1)
@custom_gradient(chosen=_chosen)
def median(x: T, *, axis: int | None = None, keepdims: bool = False) -> tuple[T, Function]:
    """Give the median along an axis, with its gradient shared among equal values.

    Args:
        x: Any real values.
        axis: One axis of known length, or None for all values.
        keepdims: Whether the reduced axis stays, with length one.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.median(np.array([4.0, 1.0, 2.0, 9.0])).item()
        3.0

    Do not use it where every value must have a gradient: a mean gives one to all.
    """
    axes = require_axes("median", axis if axis is None else require_axis("median", "axis", axis, x), x)
    xp = namespace(x)
    low, high = _middle(xp, x, axes)
    lost = xp.any(x != x, axis=axes, keepdims=axes is not None)
    y = xp.where(lost, math.nan, 0.5 * low + 0.5 * high)

    def grad(dy: Any) -> Any:
        back = dy if keepdims else kept(dy, axes, x)
        return {"x": back * _shares(xp, x, low, high, axes)}

    if axes is None:
        return (xp.reshape(y, (1,) * len(x.shape)) if keepdims else y), grad
    return (y if keepdims else xp.squeeze(y, axis=axes[0])), grad
