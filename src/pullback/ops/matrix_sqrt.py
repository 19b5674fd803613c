"""matrix_sqrt: the symmetric S ≥ 0 with S·S = a.

    with a = V·diag(w)·Vᵀ:   S = V·diag(√w)·Vᵀ
    S·da + da·S = dS,   ȧ = S·Ṡ + Ṡ·S:   both are one equation of Sylvester's, x with S·x + x·S = c
    x = V·[(Vᵀ·c·V)ᵢⱼ / (√wᵢ + √wⱼ)]·Vᵀ

No difference of eigenvalues is divided by, so repeated ones are right. The equation is a rule of its own,
whose pullback and pushforward are the same equation again: so every order is right.

Domain: symmetric positive semidefinite matrices; the symmetric part of any other is taken. Edges: where two
eigenvalues are 0 the slope is infinite, and 0 is given; a negative eigenvalue has no real root: NaN, unless
it is a rounding of 0. Autodiff through `eigh` gives NaN for repeated eigenvalues, such as those of the
identity. After N. Higham, Functions of Matrices, 2008, chapter 6.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.matrix import matrix, product, symmetric, transposed
from pullback.ops.reduced import narrow, wide
from pullback.typed import T


@custom_gradient
@example(np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]]))
@example(np.array([[[2.0, 0.0], [0.0, 2.0]], [[1.0, 0.3], [0.3, 1.0]]]))
def matrix_sqrt(a: T) -> tuple[T, Function]:
    """Give the symmetric square root of a positive semidefinite matrix.

    Args:
        a: Symmetric positive semidefinite matrices.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.matrix_sqrt(np.array([[4.0, 0.0], [0.0, 9.0]])).tolist()
        [[2.0, 0.0], [0.0, 3.0]]

    Do not use it to draw from a normal distribution: a Cholesky factor is as good, and cheaper.
    """
    xp = namespace(a)
    square = symmetric(matrix("matrix_sqrt", a))
    w, v = xp.linalg.eigh(square)
    roundoff = _roundoff(w)
    roots = xp.where(w < 0, xp.where(w < -roundoff, xp.nan * w, xp.zeros_like(w)), xp.sqrt(xp.abs(w)))
    root = product(v * roots[..., None, :], transposed(v))
    sums = _sums(roots)  # one step of Newton's: the vectors are less exact than their product can be
    root = root + _divided(square - product(root, root), v, sums, sums**2 > roundoff[..., None])

    def grad(dy: Any) -> Any:
        return _sylvester(matrix_sqrt(matrix("matrix_sqrt", a)), symmetric(wide("matrix_sqrt", dy)))

    return narrow(root, a), grad


@matrix_sqrt.pushforward
def _pushed(da: Any, a: Any) -> Any:
    root = matrix_sqrt(matrix("matrix_sqrt", a))
    return _sylvester(root, symmetric(wide("matrix_sqrt", da)))


@custom_gradient
def _sylvester(s: Any, c: Any) -> tuple[Any, Function]:
    """Give the x with s·x + x·s = c, for a symmetric s ≥ 0; 0 where nothing else can be said."""
    xp = namespace(s)
    w, v = xp.linalg.eigh(symmetric(s))
    sums = _sums(w)
    x = _divided(c, v, sums, sums > 0)
    x = x + _divided(c - product(s, x) - product(x, s), v, sums, sums > _roundoff(w)[..., None])

    def grad(dx: Any) -> Any:
        dc = _sylvester(s, dx)
        turned = transposed(_sylvester(s, c))
        return symmetric(-product(dc, turned) - product(turned, dc)), dc

    return x, grad


@_sylvester.pushforward
def _pushed_equation(ds: Any, dc: Any, s: Any, c: Any) -> Any:
    x, ds = _sylvester(s, c), symmetric(ds)
    return _sylvester(s, dc - product(ds, x) - product(x, ds))


def _roundoff(w: Any) -> Any:
    """Give how far eigenvalues may be off."""
    xp = namespace(w)
    return 10 * float(xp.finfo(w.dtype).eps) * xp.sum(xp.abs(w), axis=-1, keepdims=True)


def _sums(w: Any) -> Any:
    """Give wᵢ + wⱼ."""
    return w[..., :, None] + w[..., None, :]


def _divided(c: Any, v: Any, sums: Any, where: Any) -> Any:
    """Divide by sums in the basis v; 0 at the other places."""
    xp = namespace(c)
    inner = product(transposed(v), c, v) / xp.where(where, sums, xp.ones_like(sums))
    return product(v, xp.where(where, inner, xp.zeros_like(inner)), transposed(v))
