"""`scale_gradient`: a value as it is, its gradient times a factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.options import require_factor
from pullback.typed import T


def scaled(x: Any, factor: Any) -> Any:
    """Multiply by a constant: the function whose derivative `scale_gradient` is."""
    xp = hosts.of(x).arrays
    return x * (factor if isinstance(factor, (int, float)) else xp.stop(xp.cast(factor, x)))


@custom_gradient(like=scaled)
@example(np.array([0.7, -1.3, 2.1]), 0.5)
@example(np.array([0.7, -1.3, 2.1]), np.array([1.0, 0.0, -2.0]))
def scale_gradient(x: T, factor: Any) -> tuple[T, Function]:
    """Multiply the gradient of a value by a factor.

    Second order: derived, zero. Forward mode: derived, the tangent times the factor.

    Args:
        x: The value. It is returned as it is.
        factor: A number, or a tensor whose shape broadcasts to that of `x`. It gets no gradient.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> y = pb.scale_gradient(tf.constant([1.0, 2.0]), 0.1)

    Do not use it as a learning rate: optimisers like Adam divide by the size of the gradient again.
    """
    require_factor("scale_gradient", "factor", factor, x)
    xp = hosts.of(x).arrays

    def grad(dy: Any) -> Any:
        return {"x": dy * xp.cast(factor, dy)}

    return x, grad
