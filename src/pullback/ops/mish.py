"""mish: x·tanh(log(1 + eˣ)), kept as its input alone.

    with t = tanh(log(1 + eˣ)):   slope  t + x·σ(x)·(1 − t²)

All is computed again in the pullback. On PyTorch its own kernels run,
forward and backward: they keep the input alone too.

Domain: every finite x. Edges: −∞ is NaN, for ∞·0 is; the limit is 0 with slope 0. NaN stays NaN.
After D. Misra, Mish: a self regularized non-monotonic activation function, 2019 (arXiv:1908.08681).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.ops.reduced import narrow, wide
from pullback.typed import T


@custom_gradient
@example(np.array([0.7, -1.3, 2.1]))
def mish(x: T) -> tuple[T, Function]:
    """Give x·tanh(log(1 + eˣ)), and keep nothing but x.

    Args:
        x: Any real values.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.mish(np.array([-20.0, 0.0, 20.0])).round(3).tolist()
        [-0.0, 0.0, 20.0]

    Do not use it where speed counts more than a smooth slope: `relu` costs a fraction.
    """

    def grad(dy: Any) -> Any:
        return _pulled(dy, x)

    return _value(x), grad


def _value(x: Any) -> Any:
    host = hosts.of(x)
    fused = host.fused.get("mish")
    found = None if fused is None else fused.value(x)
    if found is not None:
        return found
    work = wide("mish", x)
    return narrow(work * host.arrays.tanh(host.arrays.softplus(work)), x)


def _pulled(dy: Any, x: Any) -> Any:
    host = hosts.of(x)
    fused = host.fused.get("mish")
    found = None if fused is None else fused.pull(dy, x)
    if found is not None:
        return found
    work = wide("mish", x)
    t = host.arrays.tanh(host.arrays.softplus(work))
    return wide("mish", dy) * (t + work * host.arrays.sigmoid(work) * (1 - t * t))
