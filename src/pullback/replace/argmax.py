"""`argmax_one_hot`: a one in the place of the largest, with the gradient of a softmax.

With s = softmax(x / T):   dx = s·(dy − Σ s·dy) / T
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import hosts
from pullback.example import example
from pullback.options import require_axis, require_number, require_word
from pullback.replace.surrogate import surrogate
from pullback.typed import P, RuleFunction, T, Y

_LIKE = ("softmax", "straight_through")


def smooth_argmax(x: Any, *, axis: int = -1, like: str = "softmax", temperature: float = 1.0) -> Any:
    """Spread the one over the large values: the function whose derivative `argmax_one_hot` has."""
    return x if like == "straight_through" else hosts.of(x).arrays.softmax(x / temperature, axis)


def _like_softmax(f: Callable[P, Y]) -> RuleFunction[P, Y]:
    return surrogate(f, like=smooth_argmax)


@_like_softmax
@example(np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]]))
@example(np.array([0.7, -1.3, 2.1]), like="straight_through")
@example(np.array([[0.7, -1.3], [0.4, 0.9]]), axis=0, temperature=0.5)
def argmax_one_hot(x: T, *, axis: int = -1, like: str = "softmax", temperature: float = 1.0) -> T:
    """Put a one in the place of the largest value along an axis, and zeros elsewhere.

    Second order and forward mode: derived, those of the softmax.

    Args:
        x: The values, for instance logits.
        axis: The axis along which one value is chosen; of equal values the first.
        like: `"softmax"`, or `"straight_through"` to hand the gradient on as it is.
        temperature: The temperature of the softmax.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> pb.argmax_one_hot(tf.constant([[1.0, 3.0, 2.0]])).numpy().tolist()
        [[0.0, 1.0, 0.0]]

    Do not use it to predict a class: an argmax needs no gradient.
    """
    require_word("argmax_one_hot", "like", like, _LIKE)
    require_number("argmax_one_hot", "temperature", temperature, least=0, above=True, fix="temperature=1.0")
    axis = require_axis("argmax_one_hot", "axis", axis, x)
    xp = hosts.of(x).arrays
    chosen: T = xp.one_hot(xp.argmax(x, axis), x, axis)
    return chosen
