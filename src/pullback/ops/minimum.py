"""minimum: the lesser of two, with a chosen slope where they are equal.

    ∂/∂a = 1 where a < b, 0 where b < a, and `tie` where they are equal;   ∂/∂b = 1 − ∂/∂a

Domain: every a, b. Edges: where both are equal the slopes of both sides are 0 and 1; any number between them
is a subgradient, and the one that stands is an argument, declared: by default each gets half. A NaN in
either is the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.kinks import equal, preferred, require_slope
from pullback.ops.precision import narrow, wide
from pullback.typed import T


def _slopes(a: Any, b: Any, *, tie: float = 0.5) -> tuple[Any, Any]:
    xp, v, w = wide(a, b)
    return preferred(xp, v, w, v < w, w < v, tie)


def _chosen(a: Any, b: Any, *, tie: float = 0.5) -> Any:
    """`tie` of a where a = b, the rest of b."""
    xp, v, w = wide(a, b)
    return equal(xp, v, w, tie)


@example(np.array([0.7, -1.3, 2.1]), np.array([0.2, 1.1, 2.9]))
@elementwise(partials=_slopes, chosen=_chosen)
def minimum(a: T, b: T, *, tie: float = 0.5) -> T:
    """Give the lesser of two values, with the share of a tie that you choose.

    Args:
        a: The one value.
        b: The other one, a number or a tensor of a shape that broadcasts with that of `a`.
        tie: The slope of `a` where both are equal, from 0 to 1; that of `b` is the rest.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.minimum(np.array([1.0, 3.0]), np.array([2.0, 3.0])).tolist()
        [1.0, 3.0]

    Do not use it to keep values within two bounds: `pb.ops.clip` is for that.
    """
    require_slope("minimum", "tie", tie, 0, 1)
    xp, v, w = wide(a, b)
    y = xp.where((v < w) | (v != v), v, w)
    return narrow(y, a, b)  # type: ignore[no-any-return]
