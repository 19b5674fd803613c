"""silu: x·σ(x), kept as its input alone.

    slope  σ·(1 + x·(1 − σ)),   σ = 1 / (1 + e⁻ˣ), computed again in the pullback

On PyTorch its own operation stands in the place of the rule: it keeps the input alone too. In half precision
its second order has fewer digits, so there its kernels run inside the rule. `tf.nn.silu` calls a rule of its
own in every step; here the formula runs.

Domain: every x. Edges: −∞ gives 0 with slope 0, ∞ gives ∞ with slope 1. PyTorch's own gives NaN at −∞, for
∞·0 is, and so is its slope at both. NaN stays NaN.
After S. Elfwing et al., Sigmoid-weighted linear units, 2017 (arXiv:1702.03118).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.ops.own import own
from pullback.ops.precision import near
from pullback.ops.reduced import narrow, wide
from pullback.typed import T


def silu_of(x: Any) -> Any:
    """Give x·σ(x) by the host's own operation, or the formula."""
    fused = hosts.of(x).fused.get("silu")
    found = None if fused is None else fused.value(x)
    if found is not None:
        return found
    arrays, work = hosts.of(x).arrays, wide("silu", x)
    return narrow(arrays.times(work, arrays.sigmoid(work)), x)


def silu_pulled(dy: Any, x: Any) -> Any:
    """Give dy times the slope at x, by the host's own operation, or the formula."""
    fused = hosts.of(x).fused.get("silu")
    found = None if fused is None else fused.pull(dy, x)
    if found is not None:
        return found
    work = wide("silu", x)
    return wide("silu", dy) * _slope(work, hosts.of(x).arrays.sigmoid(work))


def silu_both(x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Give x·σ(x), and what takes a cotangent of it to one of x; the formula computes one σ for both."""
    fused = hosts.of(x).fused.get("silu")
    found = None if fused is None else fused.value(x)
    if found is not None:
        return found, lambda dy: silu_pulled(dy, x)
    arrays, work = hosts.of(x).arrays, wide("silu", x)
    s = arrays.sigmoid(work)
    slope = _slope(work, s)
    return narrow(arrays.times(work, s), x), lambda dy: wide("silu", dy) * slope


def _slope(x: Any, s: Any) -> Any:
    return s * (1 + near(x) * (1 - s))


@own(lambda offered, x: offered(x))
@custom_gradient
@example(np.array([0.7, -1.3, 2.1]))
def silu(x: T) -> tuple[T, Function]:
    """Give x·σ(x), also called swish, and keep nothing but x.

    Args:
        x: Any real values.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.silu(np.array([-20.0, 0.0, 20.0])).round(3).tolist()
        [-0.0, 0.0, 20.0]

    Do not use it with a gate beside it: `swiglu` keeps less.
    """

    def grad(dy: Any) -> Any:
        return silu_pulled(dy, x)

    return silu_of(x), grad
