"""`stop_gradient` and `forbid_gradient`: a value through which no gradient goes, with the reason why."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.errors import ForbiddenGradientError
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.typed import T


def constant(x: Any, *, reason: str = "") -> Any:
    """Cut a value off: the function whose derivative `stop_gradient` is."""
    return hosts.of(x).arrays.stop(x)


@custom_gradient(like=constant)
@example(np.array([0.7, -1.3, 2.1]))
def stop_gradient(x: T, *, reason: str = "") -> tuple[T, Function]:
    """Let no gradient through a value: it counts as a constant.

    Second order: zero. Forward mode: zero.

    Args:
        x: The value. It is returned as it is.
        reason: Why, for whoever reads the code or a list of its rules.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> target = pb.stop_gradient(tf.constant([1.0]), reason="the target network is not trained")

    Do not use it where a gradient would be a mistake: `forbid_gradient` raises instead of giving zero.
    """

    def grad(dy: Any) -> Any:
        return {"x": None}

    return x, grad


@custom_gradient(differs="any derivative is an error")
@example(np.array([0.7, -1.3, 2.1]), reason="labels are no parameters")
def forbid_gradient(x: T, *, reason: str = "") -> tuple[T, Function]:
    """Make it an error to differentiate through a value.

    Differentiated eagerly, or while a derivative is traced, it raises. In TensorFlow a tape outside a
    `tf.function` cannot know while it is traced, so there the derivative fails when it runs, with the same
    text; compiled by XLA, which drops assertions, it is NaN. `torch.compile` traces the way back with the
    forward, and raises then. Second order and forward mode: refused.

    Args:
        x: The value. It is returned as it is.
        reason: Why; the error gives it.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> labels = pb.forbid_gradient(tf.constant([0.0, 1.0]), reason="labels are no parameters")

    Do not use it where a gradient of zero is meant: that is `stop_gradient`.
    """

    def grad(dy: Any) -> NoReturn:
        raise _forbidden(reason)

    return x, grad


@forbid_gradient.pushforward
def _refuse(dx: Any, x: Any, *, reason: str = "") -> NoReturn:
    raise _forbidden(reason)


def _forbidden(reason: str) -> ForbiddenGradientError:
    return ForbiddenGradientError.about(
        "forbid_gradient",
        found="somebody differentiates through this value",
        expected="no derivative",
        why=reason,
        fix="pb.stop_gradient(x) before it is used, or differentiate something else",
    )
