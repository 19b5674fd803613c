"""mish: x·tanh(log(1 + eˣ)), kept as its input alone.

    with e = e^−|x|:   tanh(log(1 + eˣ)) = n / d,   x ≥ 0: n = 1 + 2e,     d = n + 2e²
                                                    x < 0: n = e·(e + 2),  d = n + 2
    slope  n/d + x·σ(x)·(1 − (n/d)²),   1 − (n/d)² = (d − n)·(d + n) / d²

No digit is lost on either side. All is computed again in the pullback. On PyTorch its own kernels run,
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
from pullback.namespace import namespace
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
    fused = hosts.of(x).fused.get("mish")
    if fused is not None:
        return fused.value(x)
    work = wide("mish", x)
    n, rest, _ = _parts(work)
    return narrow(work * (n / (n + rest)), x)


def _parts(x: Any) -> tuple[Any, Any, Any]:
    """Give n, d − n and e."""
    xp = namespace(x)
    e = xp.exp(-xp.abs(x))
    right = x >= 0
    return xp.where(right, 1 + 2 * e, e * (e + 2)), xp.where(right, 2 * e * e, 2 * xp.ones_like(e)), e


def _pulled(dy: Any, x: Any) -> Any:
    fused = hosts.of(x).fused.get("mish")
    found = None if fused is None else fused.pull(dy, x)
    if found is not None:
        return found
    work = wide("mish", x)
    n, rest, e = _parts(work)
    d = n + rest
    s = namespace(x).where(work >= 0, namespace(x).ones_like(e), e) / (1 + e)  # σ(x)
    return wide("mish", dy) * (n / d + work * s * (rest / d) * ((d + n) / d))
