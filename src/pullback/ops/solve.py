"""solve: the x with a·x = b.

    db = a⁻ᵀ·dx,   da = −db·xᵀ
    ẋ = a⁻¹·(ḃ − ȧ·x)

Domain: square matrices that are not singular, and vectors or matrices b. Edges: a singular a is an error of
NumPy, PyTorch and eager TensorFlow, and of ours in eager JAX, which has none; a program of JAX gives
infinities or NaN. A 0×0 system has nothing. Autodiff of inv(a)·b inverts in both directions, and loses digits
by it; the frameworks' own are right, and refuse float16 and bfloat16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.elementwise import unbroadcast
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.matrix import confirmed, matrix, product, transposed
from pullback.ops.reduced import narrow, wide
from pullback.typed import T

_A = np.array([[4.0, 1.0, 0.5], [0.3, -3.0, -0.2], [0.5, -0.7, 2.0]])


@custom_gradient
@example(_A, np.array([1.0, -2.0, 0.5]))
@example(np.stack([_A, _A.T]), np.array([[1.0, -2.0], [0.5, 0.7], [0.1, 0.2]]))
def solve(a: T, b: T) -> tuple[T, Function]:
    """Solve a·x = b.

    Args:
        a: Square matrices.
        b: A vector, or matrices; their batch may broadcast with that of `a`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.solve(np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 9.0])).tolist()
        [1.0, 2.0]

    Do not use it for matrices that are never formed: an implicit linear solve takes a function.
    """
    x = _solved(matrix("solve", a), wide("solve", b))

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, a, b)

    return narrow(x, b), grad


def _is_vector(b: Any) -> bool:
    shape = hosts.of(b).spec(b).shape
    return shape is not None and len(shape) == 1


def _solved(a: Any, b: Any) -> Any:
    """Solve for a vector or matrices, whose batches are made the same: not every framework does it."""
    if _is_vector(b):
        return _solved(a, b[:, None])[..., 0]
    xp = namespace(a, b)
    b = b + xp.zeros_like(a[..., :, :1])
    x = xp.linalg.solve(a + xp.zeros_like(b[..., :, :1]), b)
    return confirmed("solve", x, [a, b], "matrices that are not singular")


def _pulled(dx: Any, x: Any, a: Any, b: Any) -> tuple[Any, Any]:
    dx, flipped = wide("solve", dx), transposed(matrix("solve", a))
    if not _is_vector(b):
        db = _solved(flipped, dx)
        return unbroadcast(-product(db, transposed(x)), like=a), unbroadcast(db, like=b)
    db = _solved(flipped, dx[..., None])[..., 0]  # dx has the batch of `a`
    return unbroadcast(-db[..., :, None] * x[..., None, :], like=a), unbroadcast(db, like=b)


@solve.pushforward
def _pushed(da: Any, db: Any, a: Any, b: Any) -> Any:
    a, b, da, db = (wide("solve", part) for part in (a, b, da, db))
    if _is_vector(b):
        right = db - product(da, _solved(a, b)[..., None])[..., 0]
        return _solved(a, right[..., None])[..., 0]
    return _solved(a, db - product(da, _solved(a, b)))
