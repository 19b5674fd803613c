"""`loss`: a Keras loss from its value and its gradient with respect to the predictions.

dy is the cotangent of one loss per example, g the gradient of that loss:   d y_pred = dy · g
"""

from __future__ import annotations

import inspect
from typing import Any

from pullback import hosts
from pullback.define import function_of, intent_of
from pullback.hosts.base import Function
from pullback.replace.function import name_of, require_functions, where_of
from pullback.rule import Rule, source_of


def loss(
    value: Function,
    gradient: Function,
    *,
    like: Function | None = None,
    differs: str | None = None,
    name: str | None = None,
    reduction: str = "sum_over_batch_size",
    dtype: Any = None,
) -> Any:
    """Build a Keras loss from a value and an analytical gradient.

    It respects sample weights, class weights, reductions, mixed precision and distribution as every Keras
    loss does, on each of Keras's backends, and is saved with a model if both functions are registered with
    Keras. Labels get no gradient. Second order: derived, by differentiating `gradient`. Forward mode:
    derived.

    Args:
        value: Takes `y_true, y_pred`, and returns one loss per example, or one per element.
        gradient: Takes `y_true, y_pred`, and returns the derivative of each example's loss with respect to
            `y_pred`, in the shape of `y_pred`.
        like: The function whose derivative this gradient is, when it is not that of `value`.
        differs: Why the gradient is another one on purpose.
        name: The name of the loss; by default that of `value`.
        reduction: How Keras reduces the losses of a batch.
        dtype: The dtype in which Keras computes the loss.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> def value(y_true, y_pred):
        ...     return tf.reduce_mean(tf.square(y_pred - y_true), -1)
        >>> def gradient(y_true, y_pred):
        ...     return 2 * (y_pred - y_true) / tf.cast(tf.shape(y_pred)[-1], y_pred.dtype)
        >>> squared_error = pb.loss(value, gradient)
        >>> float(squared_error(tf.zeros([2, 1]), tf.ones([2, 1])))
        1.0

    Do not use it where Keras has the loss, and its gradient is right.
    """
    from pullback.keras import RuleLoss

    return RuleLoss(value, gradient, like=like, differs=differs, name=name, reduction=reduction, dtype=dtype)


def loss_rule(value: Function, gradient: Function, like: Any, differs: str | None) -> Function:
    """Make the rule of a loss: one value per example, whose gradient is given."""
    require_functions("loss", "pb.loss(value, gradient)", value=value, gradient=gradient)
    where = where_of(value)

    def body(y_true: Any, y_pred: Any) -> Any:
        host = hosts.of(y_pred)

        def grad(dy: Any) -> Any:
            slope = host.run(gradient, [y_true, y_pred], {}, where_of(gradient))
            return {"y_pred": host.arrays.trail(dy, y_pred) * slope}

        return host.run(value, [y_true, y_pred], {}, where), grad

    body.__name__ = name_of(value)
    body.__wrapped__ = value  # type: ignore[attr-defined]
    return function_of(
        Rule(
            body=body,
            name=name_of(value),
            signature=inspect.signature(body, follow_wrapped=False),
            intent=intent_of(where, like, differs),
            source=source_of(value),
        )
    )
