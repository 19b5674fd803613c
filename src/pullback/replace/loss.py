"""`loss`: a Keras loss from its value and its gradient with respect to the predictions."""

from __future__ import annotations

from typing import Any

from pullback.hosts.operation import Function
from pullback.typed import Loss


def loss(
    value: Function,
    gradient: Function,
    *,
    like: Function | None = None,
    differs: str | None = None,
    name: str | None = None,
    reduction: str = "sum_over_batch_size",
    dtype: Any = None,
) -> Loss:
    """Build a Keras loss from a value and an analytical gradient.

    It respects sample weights, class weights, reductions, mixed precision and distribution as every Keras
    loss does, on each of Keras's backends, and is saved with a model if both functions are registered with
    Keras. Labels get no gradient. Second order: derived, by differentiating `gradient`. Forward mode:
    derived.

    Args:
        value: Takes `y_true, y_pred`, and returns one loss per example, or one per element; with
            `reduction="none"` also one for the whole batch, which takes no weights.
        gradient: Takes `y_true, y_pred`, and returns the derivative of each example's loss with respect to
            `y_pred`, in the shape of `y_pred`; that of the one loss if there is one for the whole batch.
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
    from pullback.keras.loss import RuleLoss

    return RuleLoss(value, gradient, like=like, differs=differs, name=name, reduction=reduction, dtype=dtype)
