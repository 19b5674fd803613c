"""prod: y = Π xⱼ, with a gradient that is right where some of them are 0.

    dxᵢ = dy · Lᵢ · Rᵢ,   Lᵢ = Π over j < i of xⱼ,   Rᵢ = Π over j > i of xⱼ

Nothing is divided, so any number of zeros is right; L and R are products by doubling (`cumprod`), so every
order is.

Domain: every x. Edges: the product of nothing is 1; 0·∞ is NaN, as it is in any product. Each factor rounds
once. Autodiff as dy·y / xᵢ gives NaN at a zero; JAX and TensorFlow are right at first order, PyTorch searches
for zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.cumprod import before, lengths_known, products, swapped
from pullback.ops.reduced import Axis, axes_of, dropped, narrow, spread, wide
from pullback.typed import T


@custom_gradient
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]), axis=-1)
@example(np.array([[0.7, 0.0, 2.1, 0.0, 1.1], [0.0, 0.9, -2.6, 0.3, 0.6]]), axis=1, keepdims=True)
@example(np.array([[0.7, 0.0, 2.1], [1.1, 0.9, -2.6]]))
def prod(x: T, *, axis: Axis = None, keepdims: bool = False) -> tuple[T, Function]:
    """Multiply over axes; the gradient is right where factors are 0.

    Args:
        x: Any real values.
        axis: The axis, or axes, that are multiplied over; None for all. Their lengths must be known.
        keepdims: Whether these stay, with length one.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.prod(np.array([[2.0, 3.0, 0.0], [1.0, 2.0, 3.0]]), axis=-1).tolist()
        [0.0, 6.0]

    Do not use it for many factors of one size: sums of logarithms keep their range.
    """
    axes = axes_of("prod", x, axis)
    lengths_known("prod", x, axes)
    y = wide("prod", x)
    for one in axes:
        y = namespace(x).prod(y, axis=one, keepdims=True)

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, axis, keepdims)

    return narrow(dropped(y, axes, keepdims), x), grad


def _pulled(dy: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    axes, dy = axes_of("prod", x, axis), wide("prod", dy)
    return (dy if keepdims else spread(dy, axes)) * _of_the_others(wide("prod", x), axes)


def _of_the_others(x: Any, axes: tuple[int, ...]) -> Any:
    """Give at each place the product of all others along the axes, one axis after the other."""
    xp = namespace(x)
    found = xp.ones_like(x)
    for axis in axes:
        along = swapped(x, axis)
        if along.shape[-1] == 0:
            return found  # of nothing
        left = products(along)
        right = xp.flip(before(products(xp.flip(along, axis=-1)), 1, 1.0), axis=-1)
        found = found * swapped(before(left, 1, 1.0) * right, axis)
        x = swapped(left[..., -1:], axis)  # what remains to be multiplied over the other axes
    return found
