"""`map_gradient`: a value as it is, its gradient through a function."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts, takes
from pullback.cotangent import conform, shown
from pullback.define import custom_gradient
from pullback.errors import CotangentCountError, GradSignatureError
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.options import require_functions
from pullback.rule import at, source_of
from pullback.typed import T


@custom_gradient(differs="the gradient is passed through a function")
@example(np.array([0.7, -1.3, 2.1]), lambda dy: 3 * dy)
@example(np.array([0.7, -1.3, 2.1]), lambda dy: dy * dy * dy)
def map_gradient(x: T, fn: Function) -> tuple[T, Function]:
    """Pass the gradient of a value through a function.

    Second order: derived, by differentiating `fn`. Forward mode: derived if `fn` is linear, refused
    otherwise.

    Args:
        x: The value. It is returned as it is.
        fn: Takes the gradient, and returns one of the same shape. None is refused: `stop_gradient` says it.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> y = pb.map_gradient(tf.ones([3]), tf.sign)

    Do not use it for what has a name: scale, reverse, clip, finite.
    """
    require_functions("map_gradient", "pb.map_gradient(x, sign)", fn=fn)
    host = hosts.of(x)

    def refusal(found: str) -> GradSignatureError:
        return GradSignatureError.about(
            at("map_gradient", source_of(fn)),
            found=found,
            expected="a function of one argument: the gradient",
            fix="pb.map_gradient(x, lambda dy: …)",
        )

    def grad(dy: Any) -> Any:
        dx = takes.run(host, fn, [dy], {}, "map_gradient", refusal)
        if dx is not None and host.fit([dx], [x]):
            return {"x": dx}
        where = at("map_gradient", source_of(fn))
        if dx is None:
            raise CotangentCountError.about(
                where,
                found=f"{shown(fn)} returned nothing",
                expected="the gradient that goes on, in the shape of the one that it was given",
                fix="return it, or for no gradient at all: pb.stop_gradient(x)",
            )
        return {"x": conform(dx, x, host, where, "argument `x`", fn, optional=False)}

    return x, grad
