"""`clip_gradient`: a value as it is, its gradient kept within bounds.

value     dx = min(max(dy, −c), c)
norm      dx = dy · min(1, c / ‖dy‖)
adaptive  dx = dy · min(1, c·max(‖x‖, ε) / ‖dy‖)          (Brock et al. 2021, arXiv:2102.06171)

The factor is computed as 1/√max(‖dy‖²/c², 1): exactly one where nothing is clipped, and smooth at dy = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.errors import OptionError
from pullback.example import example
from pullback.hosts.base import Arrays
from pullback.hosts.operation import Function
from pullback.options import forward_refused, require_number, require_word
from pullback.typed import T

_KEEP = {"tensor": None, "example": 0, "unit": -1}  # the axis along which norms are taken one by one
_SMALLEST = 1e-3  # a weight that is zero may still move


@custom_gradient(differs="the gradient is clipped")
@example(np.array([0.7, -1.3, 2.1]), value=0.5)
@example(np.array([0.7, -1.3, 2.1]), value=(-0.2, 0.4))
@example(np.array([0.7, -1.3, 2.1]), norm=0.5)
@example(np.array([[0.7, -1.3], [0.4, 0.9]]), norm=0.5, each="example")
@example(np.array([[0.7, -1.3], [0.4, 0.9]]), adaptive=0.1, each="unit")
def clip_gradient(
    x: T,
    *,
    value: float | tuple[float, float] | None = None,
    norm: float | None = None,
    adaptive: float | None = None,
    each: str = "tensor",
) -> tuple[T, Function]:
    """Keep the gradient of a value within bounds, by one of three rules.

    NaN stays NaN. Second order: derived, that of the clipped gradient. Forward mode: refused.

    Args:
        x: The value. It is returned as it is.
        value: The largest size of each element, or a pair of its least and its largest value.
        norm: The largest Euclidean norm.
        adaptive: The largest ratio of the gradient's norm to the norm of `x`.
        each: What has a norm of its own: the whole `"tensor"`, each `"example"` along the first axis, or each
            `"unit"` along the last.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> y = pb.clip_gradient(tf.ones([8, 3]), norm=1.0, each="example")

    Do not use it to bound the gradient of a whole model: optimisers take `global_clipnorm`.
    """
    _require_one(value, norm, adaptive)
    require_word("clip_gradient", "each", each, _KEEP)
    xp = hosts.of(x).arrays

    def grad(dy: Any) -> Any:
        if value is not None:
            least, largest = value if isinstance(value, (tuple, list)) else (-value, value)
            return xp.clip(dy, xp.cast(least, dy), xp.cast(largest, dy))
        return _by_norm(xp, dy, x, norm, adaptive, _KEEP[each])

    return x, grad


@clip_gradient.pushforward
def _refuse(*_: Any, **__: Any) -> Any:
    raise forward_refused("clip_gradient")


def _by_norm(xp: Arrays, dy: Any, x: Any, norm: Any, adaptive: Any, keep: int | None) -> Any:
    ratio = xp.square_sum(xp.wide(dy), keep)
    if adaptive is not None:
        size = xp.square_sum(xp.wide(x), keep)
        ratio = ratio / xp.maximum(size, xp.cast(_SMALLEST**2, size))
    limit = xp.cast(norm if adaptive is None else adaptive, ratio)
    factor = 1 / xp.sqrt(xp.maximum(ratio / limit / limit, xp.cast(1.0, ratio)))
    return xp.cast(xp.wide(dy) * xp.cast(factor, xp.wide(dy)), dy)


def _require_one(value: Any, norm: Any, adaptive: Any) -> None:
    given = {"value": value, "norm": norm, "adaptive": adaptive}
    named = [name for name, limit in given.items() if limit is not None]
    if len(named) != 1:
        raise OptionError.about(
            "clip_gradient",
            found=" and ".join(f"{name}=" for name in named) or "no limit",
            expected="one of value=, norm=, adaptive=",
            fix="pb.clip_gradient(x, norm=1.0)",
        )
    limit = given[named[0]]
    if isinstance(limit, (tuple, list)):
        if named != ["value"] or len(limit) != 2 or not limit[0] <= limit[1]:
            raise OptionError.about(
                "clip_gradient",
                found=f"{named[0]}={limit!r}",
                expected="a number, or for value= a pair (least, largest)",
                fix="value=(-1.0, 1.0)",
            )
        return
    require_number(
        "clip_gradient",
        named[0],
        limit,
        least=0,
        above=True,
        fix=f"{named[0]}=1.0   # or pb.stop_gradient(x)",
    )
