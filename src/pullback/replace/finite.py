"""`finite_gradient`: a value as it is, its gradient without NaN and infinities, which are counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.dynamo import Counter
from pullback.hosts.operation import Function
from pullback.options import forward_refused
from pullback.typed import T, carrying


@custom_gradient(differs="NaN and infinities in the gradient are set to zero")
def _finite(x: T, counter: Counter | None, label: str) -> tuple[T, Function]:
    xp = hosts.of(x).arrays

    def grad(dy: Any) -> Any:
        good = xp.isfinite(dy)
        text = f"pullback: finite_gradient set NaN or inf in the gradient of {label or 'a value'} to zero"
        kept = xp.where(good, dy, xp.zeros_like(dy))
        return {"x": xp.report(~good, text, None if counter is None else counter.variable, kept)}

    return x, grad


@_finite.pushforward
def _refuse(*_: Any, **__: Any) -> Any:
    raise forward_refused("finite_gradient")


@carrying(_finite.rule)
@example(np.array([0.7, -1.3, 2.1]))
def finite_gradient(x: T, *, counter: Any = None, label: str = "") -> T:
    """Set NaN and infinities in the gradient of a value to zero, and count them.

    Without a counter a line on stderr tells how many there were, in eager mode only: a program that may be
    compiled cannot print. Second order: derived, that of the cleaned gradient. Forward mode: refused.

    Args:
        x: The value. It is returned as it is.
        counter: What the number of replaced elements is added to: a `tf.Variable` or a tensor of PyTorch, of
            an integer dtype; on JAX, which has no variables, an integer array of NumPy with one element.
        label: What to call the value in the line on stderr.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> lost = tf.Variable(0, trainable=False)
        >>> y = pb.finite_gradient(tf.constant([0.0, 1.0]), counter=lost)

    Do not use it to hide a gradient that is always NaN: give the function that makes it a stable gradient.
    """
    return _finite(x, None if counter is None else Counter(counter), label)
