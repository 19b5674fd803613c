"""cholesky: the lower triangle L with positive diagonal and L·Lᵀ = a.

    with Φ: the lower triangle, its diagonal halved
    da = ½(M + Mᵀ),   M = L⁻ᵀ·Φ(Lᵀ·dL)·L⁻¹
    L̇ = L·Φ(L⁻¹·ȧ·L⁻ᵀ)

Domain: symmetric positive definite matrices; the symmetric part of any other is taken. Edges: a matrix that
is not positive definite is an error of NumPy, PyTorch and eager TensorFlow, and of ours in eager JAX, which
has none; a program of JAX gives NaN. The frameworks' own are right too; they refuse float16 and bfloat16.
After I. Murray, Differentiation of the Cholesky decomposition, 2016 (arXiv:1602.07527).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.matrix import confirmed, matrix, product, symmetric, transposed
from pullback.ops.reduced import narrow, wide
from pullback.typed import T


@custom_gradient
@example(np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]]))
def cholesky(a: T) -> tuple[T, Function]:
    """Give the Cholesky factor: the lower triangle L with L·Lᵀ = a.

    Args:
        a: Symmetric positive definite matrices.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
        [[2.0, 0.0], [1.0, 2.0]]

    Do not use it to solve or for a determinant alone: `solve` and `logdet` say what they mean.
    """
    lower = _factor(a)

    def grad(dy: Any) -> Any:
        return _pulled(dy, lower)

    return narrow(lower, a), grad


def _factor(a: Any) -> Any:
    lower = namespace(a).linalg.cholesky(symmetric(matrix("cholesky", a)))
    return confirmed("cholesky", lower, [a], "positive definite matrices")


def _pulled(dy: Any, lower: Any) -> Any:
    inverse = namespace(lower).linalg.inv(lower)
    middle = _halved(product(transposed(lower), wide("cholesky", dy)))
    return symmetric(product(transposed(inverse), middle, inverse))


@cholesky.pushforward
def _pushed(da: Any, a: Any) -> Any:
    lower = _factor(a)
    inverse = namespace(lower).linalg.inv(lower)
    return product(lower, _halved(product(inverse, symmetric(wide("cholesky", da)), transposed(inverse))))


def _halved(x: Any) -> Any:
    xp = namespace(x)
    return (xp.tril(x) + xp.tril(x, k=-1)) / 2  # Φ
