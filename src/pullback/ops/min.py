"""min: the least value along axes, with ties shared.

    dxᵢ = dy · (1 / n where xᵢ is one of the n least values, and 0 elsewhere)

Domain: every x with at least one value along the axes. Edges: at a tie any division of 1 is a subgradient;
by default it is even, and `ties="first"` gives all of it to the first. It is declared. A NaN is the result
of what it is in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.kinks import require_axes, require_some, require_ties, shared, tied
from pullback.typed import T


def _chosen(x: Any, *, axis: Any = None, keepdims: bool = False, ties: str = "even") -> Any:
    """A tie is divided as `ties` says."""
    axes = require_axes("min", axis, x)
    return tied(x, namespace(x).min(x, axis=axes, keepdims=True), axes, ties)


@example(np.array([[0.7, -1.3, 2.1], [0.4, 1.1, -0.2]]), axis=1)
@custom_gradient(chosen=_chosen)
def min(x: T, *, axis: Any = None, keepdims: bool = False, ties: str = "even") -> tuple[T, Function]:
    """Give the least value along axes, with its gradient shared among equal ones.

    Args:
        x: Any real values.
        axis: The axis, a tuple of axes, or None for all of them.
        keepdims: Whether the reduced axes stay, with length one.
        ties: "even" shares a tie evenly, "first" gives it to the first along one axis.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.min(np.array([1.0, 3.0, 3.0, 1.0])).item()
        1.0

    Do not use it for two tensors: `pb.ops.minimum` takes those element by element.
    """
    axes = require_axes("min", axis, x)
    require_ties("min", ties, axes, x)
    require_some("min", axes, x)
    xp = namespace(x)
    best = xp.min(x, axis=axes, keepdims=True)

    def grad(dy: Any) -> Any:
        return {"x": shared(dy, x, best, axes, keepdims, ties)}

    return (best if keepdims else xp.min(x, axis=axes)), grad
