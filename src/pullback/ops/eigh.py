"""eigh: w and V with a = V·diag(w)·Vᵀ, with slopes that stay finite where eigenvalues repeat.

    with gᵢⱼ = wⱼ − wᵢ and Fᵢⱼ = gᵢⱼ / (gᵢⱼ² + β²),   β = broadening · max |w|
    da = sym V·(diag(dw) + F∘(Vᵀ·dV))·Vᵀ
    ẇ = diag(P),   V̇ = V·(F∘P),   P = Vᵀ·ȧ·V

F would be 1/g, which is infinite where two eigenvalues are one: there V can be turned, and has no derivative.
Broadened by a Lorentzian it is 0 there, and off by (β/g)² elsewhere. What depends on the subspaces and not on
the choice of V within them gets the right gradient. The slope of w alone is exact.

Domain: symmetric matrices; the symmetric part of any other is taken. Eigenvalues rise; the largest entry of
each eigenvector is positive, so that every framework gives the same. Edges: NaN or ∞ in a is what the
framework makes of it. Autodiff gives NaN or ∞ where eigenvalues repeat. After H. Liao et al., Differentiable
programming tensor networks, Phys. Rev. X 9, 031041 (2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.matrix import broadened, matrix, product, signs, symmetric, transposed, width
from pullback.ops.reduced import narrow, wide
from pullback.options import require_number
from pullback.typed import T

_A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]])


@custom_gradient(differs="1/gap of eigenvalues is broadened by a Lorentzian, 0 where they repeat")
@example(_A)
@example(np.stack([_A, _A @ _A]), broadening=1e-9)
def eigh(a: T, *, broadening: float | None = None) -> tuple[tuple[T, T], Function]:
    """Give the eigenvalues and eigenvectors of symmetric matrices, differentiable where they repeat.

    Args:
        a: Symmetric matrices.
        broadening: The gap, relative to the largest eigenvalue, below which two count as one; by default
            the root of roundoff.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))[0].round(6).tolist()
        [1.0, 3.0]

    Do not use it for a function of the matrix such as a square root: `matrix_sqrt` is exact.
    """
    require_number("eigh", "broadening", broadening, least=0, fix="broadening=1e-6")
    w, v = namespace(a).linalg.eigh(symmetric(matrix("eigh", a)))
    v = v * signs(v)

    def grad(dw: Any, dv: Any) -> Any:
        return _pulled(dw, dv, a, broadening)

    return (narrow(w, a), narrow(v, a)), grad


def _decomposed(a: Any, broadening: float | None) -> tuple[Any, Any, Any]:
    """Give w, V and F, by the rule itself: so every order is broadened."""
    w, v = eigh(matrix("eigh", a), broadening=broadening)
    return w, v, broadened(w[..., None, :] - w[..., :, None], width(w, broadening))


def _pulled(dw: Any, dv: Any, a: Any, broadening: float | None) -> Any:
    _, v, f = _decomposed(a, broadening)
    dw, dv, vt = wide("eigh", dw), wide("eigh", dv), transposed(v)
    return symmetric(product(v * dw[..., None, :] + product(v, f * product(vt, dv)), vt))


@eigh.pushforward
def _pushed(da: Any, a: Any, *, broadening: float | None = None) -> Any:
    _, v, f = _decomposed(a, broadening)
    p = product(transposed(v), symmetric(wide("eigh", da)), v)
    return namespace(p).linalg.diagonal(p), product(v, f * p)
