"""logdet: log |det a|.

    y = Σ log |Rᵢᵢ| with a = Q·R,   da = dy · a⁻ᵀ

Domain: square matrices that are not singular. Edges: a singular one gives −∞; its gradient is infinite, and
an error of NumPy, PyTorch and eager TensorFlow, where an inverse is, and of ours in eager JAX; a program of
JAX gives infinities. The 0×0 matrix gives 0. Autodiff of log(abs(det(a))) leaves the range of numbers with
det a: at 100×100 matrices of entries near 10 in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.matrix import confirmed, matrix, transposed
from pullback.ops.reduced import narrow, wide
from pullback.typed import T


@custom_gradient
@example(np.array([[4.0, 1.0, 0.5], [0.3, -3.0, -0.2], [0.5, -0.7, 2.0]]))
@example(np.array([[[4.0, 1.0], [0.3, 3.0]], [[0.2, 0.5], [-0.7, 2.0]]]))
def logdet(a: T) -> tuple[T, Function]:
    """Give the logarithm of the size of a determinant.

    Args:
        a: Square matrices.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.logdet(1e-200 * np.eye(3)).round(1).tolist()
        -1381.6

    Do not use it where the sign of the determinant matters.
    """
    xp = namespace(a)
    sizes = xp.abs(xp.linalg.diagonal(xp.linalg.qr(matrix("logdet", a))[1]))
    logs = xp.log(xp.where(sizes == 0, xp.ones_like(sizes), sizes))
    y = xp.sum(xp.where(sizes == 0, xp.full_like(logs, -xp.inf), logs), axis=-1)

    def grad(dy: Any) -> Any:
        return _pulled(dy, a)

    return narrow(y, a), grad


def _pulled(dy: Any, a: Any) -> Any:
    inverse = namespace(a).linalg.inv(matrix("logdet", a))
    inverse = confirmed("logdet", inverse, [a], "matrices that are not singular: else there is no gradient")
    return wide("logdet", dy)[..., None, None] * transposed(inverse)
