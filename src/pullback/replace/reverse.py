"""`reverse_gradient`: a value as it is, its gradient turned round, as domain-adversarial training needs
it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.options import require_factor, require_number
from pullback.replace.scale import scaled
from pullback.typed import T


def reversed_value(x: Any, strength: Any = 1.0) -> Any:
    """Multiply by −strength: the function whose derivative `reverse_gradient` is."""
    return -scaled(x, _now(strength))


def _now(strength: Any) -> Any:
    return strength() if callable(strength) else strength


@custom_gradient(like=reversed_value)
@example(np.array([0.7, -1.3, 2.1]))
@example(np.array([0.7, -1.3, 2.1]), 0.5)
@example(np.array([0.7, -1.3, 2.1]), lambda: 0.25)
def reverse_gradient(x: T, strength: Any = 1.0) -> tuple[T, Function]:
    """Turn the gradient of a value round: −strength · dy.

    Second order: derived, zero. Forward mode: derived, the tangent times −strength.

    Args:
        x: The value. It is returned as it is.
        strength: A number that is not negative, a tensor or a variable, or a schedule: a function without
            arguments, which is called whenever the value is used. It gets no gradient.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> step = tf.Variable(0.0, trainable=False)
        >>> def ramp():
        ...     return 2 / (1 + tf.exp(-step / 100)) - 1
        >>> features = pb.reverse_gradient(tf.constant([1.0, 2.0]), ramp)

    Do not use it to climb a loss: negate the loss, which also negates what is reported.
    """
    xp = hosts.of(x).arrays
    now = _now(strength)
    require_factor("reverse_gradient", "strength", now, x)
    require_number("reverse_gradient", "strength", now, least=0, fix="pb.scale_gradient(x, factor)")

    def grad(dy: Any) -> Any:
        return {"x": -dy * xp.cast(now, dy)}

    return x, grad
