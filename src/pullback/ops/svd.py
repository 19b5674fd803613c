"""svd: U, s and Vᵀ with a = U·diag(s)·Vᵀ, with slopes that stay finite where singular values repeat.

    with Fᵢⱼ = L(sⱼ − sᵢ)·L(sⱼ + sᵢ), L(g) = g / (g² + β²), β = broadening · max s
    da = U·(F∘(Uᵀ·dU − dUᵀ·U)·S + S·F∘(Vᵀ·dV − dVᵀ·V) + diag(ds))·Vᵀ
         + (dU − U·Uᵀ·dU)·L(S)·Vᵀ + U·L(S)·(dV − V·Vᵀ·dV)ᵀ
    with P = Uᵀ·ȧ·V:   ṡ = diag(P)
    U̇ = U·F∘(P·S + S·Pᵀ) + (ȧ·V − U·P)·L(S),   V̇ = V·F∘(S·P + Pᵀ·S) + (ȧᵀ·U − V·Pᵀ)·L(S)

L would be 1/g, which is infinite where two singular values are one, or one is 0: there U and V can be turned,
and have no derivative. Broadened by a Lorentzian it is 0 there, and off by (β/g)² elsewhere. The slope of s
alone is exact where no singular value is 0.

Domain: every finite matrix; U and V are thin: as many columns as the shorter side. Singular values fall; the
largest entry of each column of U is positive, so that every framework gives the same. Edges: NaN or ∞ in a is
what the framework makes of it, and refused on NumPy. Autodiff gives NaN or ∞ where singular values repeat.
After J. Townsend, Differentiating the singular value decomposition, 2016; broadened after Liao et al. 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.errors import UnsupportedInputError
from pullback.example import example
from pullback.hosts.numpy import HOST as NUMPY
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.matrix import broadened, matrix, product, signs, transposed, width
from pullback.ops.reduced import narrow, wide
from pullback.options import require_number
from pullback.typed import T

_A = np.array([[4.0, 1.0, 0.5], [0.3, -3.0, -0.2], [0.5, -0.7, 2.0], [0.1, 0.9, 1.4]])


@custom_gradient(differs="1/gap of singular values is broadened by a Lorentzian, 0 where they repeat")
@example(_A)
@example(_A.T)
def svd(a: T, *, broadening: float | None = None) -> tuple[tuple[T, T, T], Function]:
    """Give the thin singular value decomposition U, s, Vᵀ, differentiable where singular values repeat.

    Args:
        a: Any real matrices.
        broadening: The gap, relative to the largest singular value, below which two count as one; by default
            the root of roundoff.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.svd(np.array([[3.0, 0.0], [0.0, 5.0], [0.0, 0.0]]))[1].round(6).tolist()
        [5.0, 3.0]

    Do not use it for the largest singular value alone: that of a power iteration is cheaper.
    """
    require_number("svd", "broadening", broadening, least=0, fix="broadening=1e-6")
    u, s, vt = namespace(a).linalg.svd(_finite(matrix("svd", a, square=False)), full_matrices=False)
    turn = signs(u)
    u, vt = u * turn, vt * transposed(turn)

    def grad(du: Any, ds: Any, dvt: Any) -> Any:
        return _pulled(du, ds, dvt, a, broadening)

    return (narrow(u, a), narrow(s, a), narrow(vt, a)), grad


def _finite(a: Any) -> Any:
    """Refuse what is not finite on NumPy, whose SVD does not return from an infinity."""
    if hosts.of(a) is NUMPY and not np.isfinite(a).all():
        raise UnsupportedInputError.about(
            "svd",
            found="a matrix with infinities or NaN",
            expected="finite numbers",
            fix="leave them out first",
        )
    return a


def _decomposed(a: Any, broadening: float | None) -> tuple[Any, Any, Any, Any, Any]:
    """Give U, V, 1/gap, s over the sum and 1/s, broadened, by the rule itself: so every order is.

    1/gap times 1/sum is 1/s², which may leave the range where the slope does not.
    """
    u, s, vt = svd(matrix("svd", a, square=False), broadening=broadening)
    row, column = s[..., None, :], s[..., :, None]
    beta = width(s, broadening)
    over = broadened(row + column, beta) * row
    return u, transposed(vt), broadened(row - column, beta), over, broadened(row, beta)


def _pulled(du: Any, ds: Any, dvt: Any, a: Any, broadening: float | None) -> Any:
    u, v, f, over, inverse = _decomposed(a, broadening)
    du, ds, dv = wide("svd", du), wide("svd", ds)[..., None, :], transposed(wide("svd", dvt))
    ut, vt = transposed(u), transposed(v)
    inu, inv = product(ut, du), product(vt, dv)
    left = f * (inu - transposed(inu)) * over
    right = f * (inv - transposed(inv)) * transposed(over)
    inside = product(product(u, left + right) + u * ds, vt)
    across = product((du - product(u, inu)) * inverse, vt)
    return inside + across + product(u * inverse, transposed(dv - product(v, inv)))


@svd.pushforward
def _pushed(da: Any, a: Any, *, broadening: float | None = None) -> Any:
    u, v, f, over, inverse = _decomposed(a, broadening)
    da = wide("svd", da)
    p = product(transposed(u), da, v)
    pt, under = transposed(p), transposed(over)
    du = product(u, f * (p * over + under * pt)) + (product(da, v) - product(u, p)) * inverse
    dv = product(v, f * (under * p + pt * over)) + (product(transposed(da), u) - product(v, pt)) * inverse
    return du, namespace(p).linalg.diagonal(p), transposed(dv)
