"""cumprod: yₖ = Π over j ≤ k of xⱼ, with a gradient that is right where some of them are 0.

    dxᵢ = Lᵢ · Sᵢ,   Lᵢ = Π over j < i of xⱼ,   Sᵢ = Σ over k ≥ i of dyₖ · Π over i < j ≤ k of xⱼ
    Sᵢ = dyᵢ + xᵢ₊₁ · Sᵢ₊₁

The recurrence is run by doubling: after the step of width d, each place knows the d places from itself on.
Nothing is divided, so any number of zeros is right; and all of it is sums and products, so every order is.

Domain: every x. Edges: an axis of length 0 gives nothing; 0·∞ is NaN, as it is in any product. Each factor
rounds once. As Σ dy·y / x, which TensorFlow has, a zero gives a wrong gradient; PyTorch searches for zeros.
After W. Hillis and G. Steele, Data parallel algorithms, 1986.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.errors import OptionError
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.reduced import narrow, wide
from pullback.options import require_axis
from pullback.typed import T


def swapped(x: Any, axis: int) -> Any:
    """Exchange an axis with the last."""
    order = list(range(len(x.shape)))
    order[axis], order[-1] = order[-1], order[axis]
    return namespace(x).permute_dims(x, tuple(order))


def before(x: Any, width: int, fill: float) -> Any:
    """Give at each place of the last axis what stands `width` places before it; `fill` where nothing does."""
    xp = namespace(x)
    return xp.concat([xp.full_like(x[..., :width], fill), x[..., :-width]], axis=-1)


def products(x: Any) -> Any:
    """Multiply along the last axis up to each place."""
    width = 1
    while width < x.shape[-1]:
        x = x * before(x, width, 1.0)
        width *= 2
    return x


def lengths_known(verb: str, x: Any, axes: tuple[int, ...]) -> None:
    """Refuse an axis whose length nobody knows yet: the number of steps depends on it."""
    shape = hosts.of(x).spec(x).shape
    if shape is None or any(shape[axis] is None for axis in axes):
        raise OptionError.about(
            verb,
            found="an axis of unknown length",
            expected="an axis whose length is known when the graph is built",
            fix="name the length in the input signature, or by reshaping",
        )


@custom_gradient
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]))
@example(np.array([[0.7, 0.0, 2.1, 0.0, 1.1], [0.0, 0.9, -2.6, 0.3, 0.6]]))
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.0, -2.6]]), axis=0)
def cumprod(x: T, *, axis: int = -1) -> tuple[T, Function]:
    """Multiply along an axis, and keep every step; the gradient is right where factors are 0.

    Args:
        x: Any real values.
        axis: The axis that is gone along. Its length must be known.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.cumprod(np.array([2.0, 3.0, 0.0, 5.0])).tolist()
        [2.0, 6.0, 0.0, 0.0]

    Do not use it for many factors of one size: sums of logarithms keep their range.
    """
    axis = require_axis("cumprod", "axis", axis, x)
    lengths_known("cumprod", x, (axis,))
    y = swapped(products(swapped(wide("cumprod", x), axis)), axis)

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, axis)

    return narrow(y, x), grad


def _pulled(dy: Any, x: Any, axis: int) -> Any:
    xp = namespace(x)
    x, dy = swapped(wide("cumprod", x), axis), swapped(wide("cumprod", dy), axis)
    if x.shape[-1] == 0:
        return swapped(dy, axis)
    # from the end to the start: what stands before a place there stands behind it here
    factors, sums = before(xp.flip(x, axis=-1), 1, 1.0), xp.flip(dy, axis=-1)
    width = 1
    while width < x.shape[-1]:
        sums = sums + factors * before(sums, width, 0.0)  # Sᵢ
        factors = factors * before(factors, width, 1.0)
        width *= 2
    return swapped(before(products(x), 1, 1.0) * xp.flip(sums, axis=-1), axis)  # Lᵢ · Sᵢ
