"""mish: x·tanh(log(1 + eˣ)), kept as its input alone.

    with e = eˣ and n = e·(e + 2):   t = tanh(log(1 + eˣ)) = n/(n + 2),   x·t
    slope  t + x·σ(x)·(1 − t²) = (n + 4·x·(n − e)/(n + 2))/(n + 2)

One exponential, and nothing cancels. From 22 on t is 1 to the last digit, and so is the slope. All is
computed again in the pullback. On PyTorch its own operation stands in the place of the rule: it keeps the
input alone too. In float16 its second order is NaN in places, so in half precision its kernels run inside the
rule.

Domain: every x. Edges: −∞ gives 0 with slope 0, ∞ gives ∞ with slope 1. PyTorch's own gives NaN at −∞, for
∞·0 is, and so is its slope at both. NaN stays NaN.
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
from pullback.ops.own import own
from pullback.ops.precision import FAR
from pullback.ops.reduced import narrow, wide
from pullback.typed import T

_FULL = 22.0


@own(lambda offered, x: offered(x))
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
    _, n, _ = _parts(work)
    return narrow(host.arrays.times(work, n / (n + 2)), x)


def _pulled(dy: Any, x: Any) -> Any:
    host = hosts.of(x)
    fused = host.fused.get("mish")
    found = None if fused is None else fused.pull(dy, x)
    if found is not None:
        return found
    e, n, low = _parts(wide("mish", x))
    bend = low * (n - e)
    del low, e  # in eager mode few arrays stay near the processor
    rest = 1 / (n + 2)
    return wide("mish", dy) * ((n + bend * rest * 4) * rest)


def _parts(x: Any) -> tuple[Any, Any, Any]:
    """Give eˣ, n, and x up to where these are large enough."""
    low = hosts.of(x).arrays.clip(x, -FAR, _FULL)
    e = namespace(x).exp(low)
    return e, e * (e + 2), low
