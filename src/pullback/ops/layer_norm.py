"""layer_norm: (x − μ)·r·scale + offset with r = 1/√(σ² + ε), kept as its inputs, or with statistics.

    with u = dy·scale and c = x − μ:   dx = r·(u − mean u − c·mean(u·c)/(σ² + ε)),   x̂ = c·r
    dscale = Σ dy·x̂,   doffset = Σ dy,   both over the other axes

μ and r are computed again in the pullback; written out, TensorFlow keeps every step of the way to them. On
PyTorch its own operation stands in the place of the rule, over the last axes: it keeps μ and r, two numbers a
row, and to compute them again would take one more pass over x, half as much time again. In half precision its
kernels run inside the rule, which keeps the inputs alone.

Domain: every x whose squares are in the range of the dtype (of float32 where that is a half): below 1e19 in
float32. Edges: ε > 0 makes a constant row the offset; ε = 0 makes it NaN. Infinities and NaN make a row NaN.
The variance is that around the mean, taken first, so a large mean costs it no digits; PyTorch's kernel
multiplies before it subtracts, and its value is off by roundoff times μ·r. After J. Ba et al., Layer
normalization, 2016 (arXiv:1607.06450).
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
from pullback.ops.own import own
from pullback.ops.reduced import Axis, axes_of, narrow, wide
from pullback.options import require_number
from pullback.typed import T

_X = np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]])


def standardized(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any, Any]:
    """Give x − μ, r, μ and σ² along axes."""
    xp = namespace(x)
    mean = xp.mean(x, axis=axes, keepdims=True)
    centred = x - mean
    variance = xp.mean(centred * centred, axis=axes, keepdims=True)
    r = 1 / xp.sqrt(variance + eps)
    return centred, r, mean, variance


def across(u: Any, centred: Any, square: Any, axes: tuple[int, ...]) -> Any:
    """Give u without its mean and without what of it lies along x − μ."""
    xp = namespace(u)
    along = xp.mean(u * centred, axis=axes, keepdims=True) / square
    return u - xp.mean(u, axis=axes, keepdims=True) - centred * along


def affine(verb: str, x: Any, scale: Any, offset: Any) -> Any:
    """Give x·scale + offset, with what there is of these."""
    x = x if scale is None else x * wide(verb, scale)
    return x if offset is None else x + wide(verb, offset)


def pulled_parts(dy: Any, xhat: Any, scale: Any, offset: Any) -> list[Any]:
    """Give the cotangents of scale and offset, of what there is of these."""
    parts = [] if scale is None else [unbroadcast(dy * xhat, like=scale)]
    return parts if offset is None else [*parts, unbroadcast(dy, like=offset)]


def _settled(offered: Any, x: Any, scale: Any, offset: Any, axis: Axis, eps: float) -> Any:
    axes = _axes(x, axis, eps)
    return offered(x, scale, offset, len(axes), eps) if _fits(x, scale, offset, axes) else None


def _axes(x: Any, axis: Axis, eps: float) -> tuple[int, ...]:
    require_number("layer_norm", "eps", eps, least=0, fix="eps=1e-5")
    return axes_of("layer_norm", x, axis)


@own(_settled)
@custom_gradient
@example(_X, np.array([1.1, 0.7, -0.4]), np.array([0.1, 0.2, -0.3]))
@example(_X, axis=(0, 1), eps=1e-3)
def layer_norm(
    x: T, scale: Any = None, offset: Any = None, *, axis: Axis = -1, eps: float = 1e-5
) -> tuple[T, Function]:
    """Take the mean along axes away, divide by the deviation, and keep nothing but the inputs.

    Args:
        x: Any real values.
        scale: What the result is multiplied with, if anything; it broadcasts to x.
        offset: What is added in the end, if anything; it broadcasts to x.
        axis: The axis, or axes, of one mean.
        eps: What is added to the variance.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.layer_norm(np.array([1.0, 3.0]), np.array([1.0, 2.0])).round(3).tolist()
        [-1.0, 2.0]

    Do not use it where the mean need not go: `rms_norm` is cheaper.
    """
    axes = _axes(x, axis, eps)
    count = len(axes) if _fits(x, scale, offset, axes) else 0

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, scale, offset, axis, eps, count)

    return _value(x, scale, offset, axes, eps, count), grad


def _value(x: Any, scale: Any, offset: Any, axes: tuple[int, ...], eps: float, count: int) -> Any:
    found = hosts.of(x).fused["layer_norm"].value(x, scale, offset, count, eps) if count else None
    if found is not None:
        return found
    centred, r, _, _ = standardized(wide("layer_norm", x), axes, eps)
    return narrow(affine("layer_norm", centred * r, scale, offset), x)


def _fits(x: Any, scale: Any, offset: Any, axes: tuple[int, ...]) -> bool:
    """Tell whether the host has an operation for it: of the last axes, and parts that have just these."""
    if "layer_norm" not in hosts.of(x).fused or not axes or axes[0] + len(axes) != len(x.shape):
        return False  # they rise, so these are the last ones
    shape, kind = x.shape[axes[0] :], x.dtype
    return all(part is None or (part.shape == shape and part.dtype == kind) for part in (scale, offset))


def _pulled(dy: Any, x: Any, scale: Any, offset: Any, axis: Axis, eps: float, count: int) -> Any:
    found = hosts.of(x).fused["layer_norm"].pull(dy, x, scale, offset, count, eps) if count else None
    if found is not None:
        return found
    axes = axes_of("layer_norm", x, axis)
    dy = wide("layer_norm", dy)
    centred, r, _, variance = standardized(wide("layer_norm", x), axes, eps)
    u = dy if scale is None else dy * wide("layer_norm", scale)
    dx = across(u, centred, variance + eps, axes) * r
    return (dx, *pulled_parts(dy, centred * r, scale, offset))
