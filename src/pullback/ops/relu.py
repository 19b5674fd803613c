"""relu: max(x, 0), with a chosen slope at 0.

    relu′(x) = 1 for x > 0, 0 for x < 0, and `at_zero` at 0

Domain: every x. Edges: at 0 the slopes of both sides are 0 and 1; any number between them is a subgradient,
and the one that stands is an argument, declared. Frameworks choose 0. NaN stays NaN.
After D. Bertoin et al., Numerical influence of ReLU′(0) on backpropagation, 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.namespace import namespace
from pullback.ops.kinks import only, require_slope
from pullback.typed import T


def _slope(x: Any, *, at_zero: float = 0.0) -> Any:
    xp = namespace(x)
    flat = xp.where(x == 0, at_zero, 0 * xp.ones_like(x))
    return xp.where(x > 0, 1.0, xp.where(x != x, x, flat))


def _chosen(x: Any, *, at_zero: float = 0.0) -> Any:
    """`at_zero` at x = 0."""
    return only(namespace(x), x == 0, at_zero, x)


@example(np.array([0.7, -1.3, 2.1]), at_zero=0.5)
@elementwise(partials=_slope, chosen=_chosen)
def relu(x: T, *, at_zero: float = 0.0) -> T:
    """Give x where it is positive and 0 elsewhere, with the slope at 0 that you choose.

    Args:
        x: Any real values.
        at_zero: The slope at 0, from 0 to 1.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.relu(np.array([-1.0, 0.0, 2.0]), at_zero=0.5).tolist()
        [0.0, 0.0, 2.0]

    Do not use it where no input is exactly 0: the framework's own is the same there.
    """
    require_slope("relu", "at_zero", at_zero, 0, 1)
    xp = namespace(x)
    return xp.where((x > 0) | (x != x), x, 0.0)  # type: ignore[no-any-return]
