"""sort: the values along an axis in order, with ties shared evenly.

    y = x[p] for a permutation p;   dx[pᵢ] = dyᵢ, and the mean of dy over equal values

Domain: every x. Edges: equal values can be put in any order, and each order gives another gradient; their
mean is a subgradient that depends on none. It is declared. The mean over a tie is right to rounding of the
sum of dy. NaN come last, or first in descending order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.precision import narrow, wide
from pullback.options import require_axis
from pullback.typed import T


def _chosen(x: Any, *, axis: int = -1, descending: bool = False) -> Any:
    """Equal values get the mean of what arrives at them."""
    return namespace(x).ones_like(x)  # of the sum of all values, whatever their order


def _shared(xp: Any, y: Any, dy: Any, axis: int) -> Any:
    """Give each of a run of equal values the mean of its run."""
    place = xp.cumulative_sum(xp.ones_like(xp.argsort(y, axis=axis)), axis=axis) - 1
    n = y.shape[axis]
    if n == 0:
        return dy
    before = xp.take_along_axis(y, xp.where(place == 0, place, place - 1), axis=axis)
    starts_here = (place == 0) | (y != before)
    run = xp.cumulative_sum(xp.astype(starts_here, place.dtype), axis=axis) - 1
    starts = xp.argsort(xp.where(starts_here, place, place + n), axis=axis)  # in order, then the rest
    start = xp.take_along_axis(starts, run, axis=axis)
    last_run = run == xp.max(run, axis=axis, keepdims=True)
    following = xp.take_along_axis(starts, xp.where(last_run, run, run + 1), axis=axis)
    last = xp.where(last_run, n - 1 + 0 * place, following - 1)
    wide_dy = wide(dy)[1]
    total = xp.cumulative_sum(wide_dy, axis=axis)
    ends = xp.take_along_axis(total, last, axis=axis) - xp.take_along_axis(total, start, axis=axis)
    ends = ends + xp.take_along_axis(wide_dy, start, axis=axis)
    mean = ends / xp.astype(last - start + 1, wide_dy.dtype)
    return narrow(xp.where(last == start, wide_dy, mean), dy)


@example(np.array([[0.7, -1.3, 2.1], [0.4, 1.1, -0.2]]))
@custom_gradient(chosen=_chosen)
def sort(x: T, *, axis: int = -1, descending: bool = False) -> tuple[T, Function]:
    """Give the values along an axis in order, with the gradient of equal ones shared.

    Args:
        x: Any real values.
        axis: The axis, of a known length.
        descending: Whether the greatest comes first.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.sort(np.array([3.0, 1.0, 2.0])).tolist()
        [1.0, 2.0, 3.0]

    Do not use it for one order statistic: `pb.ops.median`, `pb.ops.max` and `pb.ops.min` are cheaper.
    """
    axis = require_axis("sort", "axis", axis, x)
    xp = namespace(x)
    order = xp.argsort(x, axis=axis)
    y = xp.take_along_axis(x, order, axis=axis)

    def grad(dy: Any) -> Any:
        ascending = xp.flip(dy, axis=axis) if descending else dy
        shared = _shared(xp, y, ascending, axis)
        return {"x": xp.take_along_axis(shared, xp.argsort(order, axis=axis), axis=axis)}

    return (xp.flip(y, axis=axis) if descending else y), grad
