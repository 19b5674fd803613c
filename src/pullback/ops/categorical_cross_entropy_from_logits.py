"""categorical_cross_entropy_from_logits: −Σᵢ tᵢ·log pᵢ with p = softmax(x), kept as its inputs alone.

    y = −Σ t · log_softmax(x)
    dx = dy · (p·Σ t − t)
    dt = −dy · log_softmax(x),   for labels that are distributions

Labels are classes, as whole numbers, or distributions over the classes. Domain: every x, every t ≥ 0. Edges:
a class that is none (−1, or one too many) is no label: the loss and its slopes are 0 there, so it masks; t =
0 adds nothing, also under a logit of −∞; a label on a logit of −∞ gives ∞, with a finite slope. NaN stays
NaN. Autodiff of −Σ t·log(softmax(x)) gives NaN where a p rounds to 0: 104 below the largest logit in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.errors import UnsupportedInputError
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.hosts.specs import same_shape, show_shape
from pullback.namespace import namespace
from pullback.ops.log_softmax import log_probabilities
from pullback.ops.reduced import axes_of, narrow, spread, wide
from pullback.ops.softmax import probabilities
from pullback.options import require_axis
from pullback.typed import T

_NAME = "categorical_cross_entropy_from_logits"


@custom_gradient
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]), np.array([2, 0]))
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]), np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]))
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]), np.array([1, -1, 0]), axis=0)
def categorical_cross_entropy_from_logits(logits: T, labels: Any, *, axis: int = -1) -> tuple[T, Function]:
    """Give the cross-entropy of softmax(logits) against labels, one number per example.

    Args:
        logits: Any real values.
        labels: Whole numbers, in the shape of the logits without the axis; or distributions, in their shape.
        axis: The axis of the classes.

    Example:
        >>> import numpy as np, pullback as pb
        >>> logits = np.array([[0.0, -1000.0], [3.0, 3.0]])
        >>> pb.ops.categorical_cross_entropy_from_logits(logits, np.array([1, 0])).round(3).tolist()
        [1000.0, 0.693]

    Do not use it for probabilities: their logarithms are logits.
    """
    axis = require_axis(_NAME, "axis", axis, logits)
    xp = namespace(logits)
    t = _distribution(logits, labels, axis)
    log = log_probabilities(wide(_NAME, logits), axes_of(_NAME, logits, axis))
    loss = xp.sum(xp.where(t == 0, xp.zeros_like(log), -t * log), axis=axis)

    def grad(dy: Any) -> Any:
        return _pulled(dy, logits, labels, axis)

    return narrow(loss, logits), grad


def _pulled(dy: Any, logits: Any, labels: Any, axis: int) -> tuple[Any, Any]:
    xp = namespace(logits)
    x, t = wide(_NAME, logits), _distribution(logits, labels, axis)
    axes = axes_of(_NAME, logits, axis)
    dy = spread(wide(_NAME, dy), axes)
    dx = dy * (probabilities(x, axes) * xp.sum(t, axis=axis, keepdims=True) - t)
    return dx, None if hosts.of(labels).spec(labels).kind == "integer" else -dy * log_probabilities(x, axes)


def _distribution(logits: Any, labels: Any, axis: int) -> Any:
    """Give labels as distributions over the classes."""
    host = hosts.of(logits)
    labels = host.tensor(labels, where=_NAME, argument="labels")
    have, shape = host.spec(labels), host.spec(logits).shape
    classes = have.kind == "integer"
    want = (
        None
        if shape is None
        else tuple(n for i, n in enumerate(shape) if not classes or i != axis % len(shape))
    )
    if have.kind not in ("integer", "floating") or (
        have.shape is not None and want is not None and not same_shape(have.shape, want)
    ):
        listed = "the shape of the logits" if want is None else f"shape {show_shape(want)}"
        raise UnsupportedInputError.about(
            _NAME,
            found=f"labels are {have}",
            expected=f"{'classes' if classes else 'distributions'} in {listed}",
            fix="whole numbers without the axis of the classes, or floating numbers with it",
        )
    work = wide(_NAME, logits)
    return host.arrays.one_hot(labels, work, axis) if classes else host.arrays.cast(labels, work)
