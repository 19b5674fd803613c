"""ceil: the least whole number that is not below x, with a chosen slope at the steps.

    its slope is 0 between the steps, and `at_step` at whole numbers

Domain: every x. Edges: at a step the function jumps up: its slope is 0 from one side and ∞ from the other.
Any number that is not negative lies between them, and the one that stands is an argument, declared. NaN and
±∞ stay.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.namespace import namespace
from pullback.ops.kinks import only, require_slope, stepped
from pullback.typed import T


def _slope(x: Any, *, at_step: float = 0.0) -> Any:
    return stepped(x, _is_step(x), at_step)


def _is_step(x: Any) -> Any:
    xp = namespace(x)
    return xp.isfinite(x) & (x == xp.ceil(x))


def _chosen(x: Any, *, at_step: float = 0.0) -> Any:
    """`at_step` at whole numbers."""
    return only(namespace(x), _is_step(x), at_step, x)


@example(np.array([0.7, -1.3, 2.1]), at_step=0.5)
@elementwise(partials=_slope, chosen=_chosen)
def ceil(x: T, *, at_step: float = 0.0) -> T:
    """Give the least whole number that is not below x, with the slope at its steps that you choose.

    Args:
        x: Any real values.
        at_step: The slope at whole numbers, not negative.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.ceil(np.array([-1.5, 0.0, 2.7])).tolist()
        [-1.0, 0.0, 3.0]

    Do not use it to train through: its slope is 0 nearly everywhere. `pb.round` has one to train by.
    """
    require_slope("ceil", "at_step", at_step, 0, math.inf)
    return namespace(x).ceil(x)  # type: ignore[no-any-return]
