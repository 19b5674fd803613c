"""clip: x cut to low … high, with a chosen slope at the bounds.

    clip′(x) = 1 for low < x < high, 0 outside, and `at_bounds` at either bound

Domain: every x. Edges: at a bound the slopes of both sides are 0 and 1; any number between them is a
subgradient, and the one that stands is an argument, declared: by default 1, as PyTorch has it. NaN stays
NaN.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.errors import OptionError
from pullback.example import example
from pullback.namespace import namespace
from pullback.ops.kinks import only, require_slope
from pullback.typed import T


def _slope(x: Any, low: float = -math.inf, high: float = math.inf, *, at_bounds: float = 1.0) -> Any:
    xp = namespace(x)
    none = 0 * xp.ones_like(x)
    inside = xp.where((x > low) & (x < high), 1.0, xp.where(x != x, x, none))
    return xp.where((x == low) | (x == high), at_bounds, inside)


def _chosen(x: Any, low: float = -math.inf, high: float = math.inf, *, at_bounds: float = 1.0) -> Any:
    """`at_bounds` at either bound."""
    return only(namespace(x), (x == low) | (x == high), at_bounds, x)


@example(np.array([0.7, -1.3, 2.1]), -1.0, 1.5)
@elementwise(partials=_slope, chosen=_chosen)
def clip(x: T, low: float = -math.inf, high: float = math.inf, *, at_bounds: float = 1.0) -> T:
    """Give x within two bounds, with the slope at the bounds that you choose.

    Args:
        x: Any real values.
        low: The lower bound, a number.
        high: The upper bound, a greater number.
        at_bounds: The slope at either bound, from 0 to 1.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.clip(np.array([-2.0, 0.5, 1.0]), -1.0, 1.0).tolist()
        [-1.0, 0.5, 1.0]

    Do not use it for bounds that are tensors: `pb.ops.maximum` gives those a gradient, too.
    """
    require_slope("clip", "at_bounds", at_bounds, 0, 1)
    if not (isinstance(low, numbers.Real) and isinstance(high, numbers.Real) and low < high):
        raise OptionError.about(
            "clip",
            found=f"low={low!r}, high={high!r}"[:80],
            expected="two numbers, the lower bound first",
            fix="pb.ops.clip(x, -1.0, 1.0)",
        )
    xp = namespace(x)
    return xp.where(x < low, low, xp.where(x > high, high, x))
