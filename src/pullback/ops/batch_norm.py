"""batch_norm: in training, (x − μ)·r·scale + offset with μ and r = 1/√(σ² + ε) of each channel of the batch.

    with u = dy·scale, c = x − μ and x̂ = c·r, means over all axes but that of the channels, of n values each:
    dx = r·(u − mean u − c·mean(u·c)/(σ² + ε)) + (dμ + 2·dσ²·c)/n,   in one product of c and one of dy
    dscale = Σ dy·x̂,   doffset = Σ dy

It gives y, μ and σ², for the averages that a layer moves. μ and r are computed again in the pullback, so the
inputs alone are kept; TensorFlow's `moments` keeps every step of the way to them. On PyTorch, for channels at
the second axis, its own operation stands in the place of the rule: it keeps a few numbers a channel, and the
gradients of μ and σ² are those of a rule beside it. In half precision its kernels run inside the rule.

Domain: that of layer_norm. Edges: a batch of no values has a mean and a variance of NaN; ε > 0 makes a
constant channel the offset; ε = 0 makes it NaN. Infinities and NaN make their channel NaN. The variance is
that of the batch, over n; a layer that moves an average may want it over n − 1. After S. Ioffe and C.
Szegedy, Batch normalization, 2015 (arXiv:1502.03167).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.errors import OptionError
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.layer_norm import affine, standardized
from pullback.ops.own import own
from pullback.ops.reduced import dropped, narrow, wide
from pullback.options import require_axis, require_number
from pullback.typed import T

_X = np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6], [0.3, 0.1, 1.2], [-0.8, 0.5, 0.6]])
_NAME = "batch_norm"


@custom_gradient
def _statistics(x: Any, mean: Any, variance: Any, axis: int, count: float) -> Any:
    """Give a mean, and a variance over count − 1, that a host has left, with the gradients to x."""

    def grad(dmean: Any, dvariance: Any) -> Any:
        axes = _others(x, axis)
        centred = x - namespace(x).mean(x, axis=axes, keepdims=True)
        dx = (_spread(dmean, x, axis) + 2 * _spread(dvariance, x, axis) * centred) / count
        return dx, None, None

    return (mean * 1, variance * ((count - 1) / count)), grad


def _settled(offered: Any, x: Any, scale: Any, offset: Any, axis: int, eps: float) -> Any:
    axes = _axes(x, axis, eps)
    operation = offered(x, scale, offset, eps) if _fits(x, scale, offset, axes) else None
    if operation is None:
        return None
    count = _count(x, axes)

    def run(x: Any, *options: Any) -> Any:
        found = operation(x, *options)
        if found is None:
            return None
        y, mean, variance = found
        return (y, *_statistics(x, mean, variance, axis, count))

    return run


def _axes(x: Any, axis: int, eps: float) -> tuple[int, ...]:
    require_number(_NAME, "eps", eps, least=0, fix="eps=1e-5")
    return _others(x, axis)


@own(_settled)
@custom_gradient
@example(_X, np.array([1.1, 0.7, -0.4]), np.array([0.1, 0.2, -0.3]))
@example(_X.reshape(2, 3, 2), axis=1, eps=1e-3)
def batch_norm(
    x: T, scale: Any = None, offset: Any = None, *, axis: int = -1, eps: float = 1e-5
) -> tuple[tuple[T, T, T], Function]:
    """Normalize each channel over the batch, give the mean and variance too, and keep nothing but the inputs.

    Args:
        x: Any real values.
        scale: One number per channel that the result is multiplied with, if anything.
        offset: One number per channel that is added in the end, if anything.
        axis: The axis of the channels.
        eps: What is added to the variance.

    Example:
        >>> import numpy as np, pullback as pb
        >>> y, mean, variance = pb.ops.batch_norm(np.array([[1.0, 5.0], [3.0, 9.0]]))
        >>> y.round(3).tolist(), mean.tolist(), variance.tolist()
        ([[-1.0, -1.0], [1.0, 1.0]], [2.0, 7.0], [1.0, 4.0])

    Do not use it for inference: there the averages are constants, and the layer a product and a sum.
    """
    axes = _axes(x, axis, eps)
    fits = _fits(x, scale, offset, axes)

    def grad(dy: Any, dmean: Any, dvariance: Any) -> Any:
        return _pulled(dy, dmean, dvariance, x, scale, offset, axis, eps, fits)

    return _values(x, scale, offset, axis, axes, eps, fits), grad


def _values(
    x: Any, scale: Any, offset: Any, axis: int, axes: tuple[int, ...], eps: float, fits: bool
) -> tuple[Any, Any, Any]:
    found = hosts.of(x).fused[_NAME].value(x, scale, offset, eps) if fits else None
    if found is not None:
        return found  # type: ignore[no-any-return]
    centred, r, mean, variance = standardized(wide(_NAME, x), axes, eps)
    y = affine(_NAME, centred * r, _spread(scale, x, axis), _spread(offset, x, axis))
    return narrow(y, x), narrow(dropped(mean, axes, False), x), narrow(dropped(variance, axes, False), x)


def _fits(x: Any, scale: Any, offset: Any, axes: tuple[int, ...]) -> bool:
    """Tell whether the host has an operation for it: for channels at the second axis."""
    if _NAME not in hosts.of(x).fused or 1 in axes or len(x.shape) < 2:
        return False
    return all(part is None or part.dtype == x.dtype for part in (scale, offset))


def _others(x: Any, axis: int) -> tuple[int, ...]:
    """Give all axes but that of the channels."""
    shape = hosts.of(x).spec(x).shape
    if shape is None:
        raise OptionError.about(
            _NAME,
            found="an x of unknown rank",
            expected="one whose rank is known",
            fix="x.set_shape([None, 3])",
        )
    channels = require_axis(_NAME, "axis", axis, x) % len(shape)
    return tuple(i for i in range(len(shape)) if i != channels)


def _spread(part: Any, x: Any, axis: int) -> Any:
    """Let the numbers of the channels stand at their axis."""
    if part is None:
        return None
    behind = len(x.shape) - 1 - axis % len(x.shape)
    places: Any = (..., *[None] * behind)
    return part[places] if behind else part


def _pulled(
    dy: Any, dmean: Any, dvariance: Any, x: Any, scale: Any, offset: Any, axis: int, eps: float, fits: bool
) -> Any:
    dys = dy, dmean, dvariance
    found = hosts.of(x).fused[_NAME].pull(dys, x, scale, offset, eps) if fits else None
    if found is not None:
        return found
    xp, axes = namespace(x), _others(x, axis)
    dy, dmean, dvariance = (wide(_NAME, part) for part in (dy, dmean, dvariance))
    centred, r, _, variance = standardized(wide(_NAME, x), axes, eps)
    count = _count(x, axes)
    total = xp.sum(dy, axis=axes, keepdims=True)
    along = xp.sum(dy * centred, axis=axes, keepdims=True)
    rate = r if scale is None else r * wide(_NAME, _spread(scale, x, axis))
    slope = 2 * _spread(dvariance, x, axis) - rate * along / (variance + eps)
    dx = dy * rate + centred * (slope / count) + (_spread(dmean, x, axis) - rate * total) / count
    parts = [] if scale is None else [dropped(along * r, axes, False)]
    return (dx, *parts) if offset is None else (dx, *parts, dropped(total, axes, False))


def _count(x: Any, axes: tuple[int, ...]) -> Any:
    """Give n, also of a batch whose length is not known yet."""
    shape = hosts.of(x).spec(x).shape or ()
    lengths = [shape[axis] for axis in axes]
    if None in lengths:
        xp = namespace(x)
        return xp.sum(xp.ones_like(wide(_NAME, x)), axis=axes, keepdims=True)
    return float(math.prod(length for length in lengths if length is not None))
