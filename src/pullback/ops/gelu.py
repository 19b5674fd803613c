"""gelu: x·Φ(x), with Φ the distribution function of the normal distribution; kept as its input alone.

    Φ(x) = ½·erfc(−x/√2) = ½·(1 + erf(x/√2)),   slope  Φ(x) + x·φ(x),   φ(x) = e^(−x²/2) / √(2π)
    approximate:   Φ(x) ≈ t = σ(2u),   u = √(2/π)·(x + 0.044715·x³),   slope  t + 2·x·t·(1 − t)·u′

σ(2u) is ½·(1 + tanh u) without its loss of digits for negative x. All is computed again in the pullback.

On PyTorch its own operation stands in the place of the rule: it keeps the input alone too. In half precision
its second order has fewer digits, so there its kernels run inside the rule. `tf.nn.gelu` keeps four tensors
of the size of its input, six in the approximate form; here the formula runs.

Domain: every x. The formula runs erfc, which has all but two decimals of the digits below −5, as the own
operations of TensorFlow and JAX do; the form with erf, which PyTorch's kernels run, has lost them. Edges: −∞
gives 0 with slope 0, ∞ gives ∞ with slope 1; PyTorch's own gives NaN, for ∞·0 is. NaN stays NaN. After D.
Hendrycks and K. Gimpel, Gaussian error linear units, 2016 (arXiv:1606.08415).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.own import own
from pullback.ops.precision import near
from pullback.ops.reduced import narrow, wide
from pullback.options import require_word
from pullback.typed import T

_ROOT, _HALF, _CUBE = 1 / math.sqrt(2 * math.pi), math.sqrt(0.5), 0.044715
FORMS = ("none", "tanh")
_TWICE = 2 * math.sqrt(2 / math.pi)  # of 2u


def gelu_of(x: Any, approximate: str) -> Any:
    """Give x·Φ(x) by the host's own operation, or the formula."""
    require_word("gelu", "approximate", approximate, FORMS)
    host = hosts.of(x)
    fused = host.fused.get("gelu")
    found = None if fused is None else fused.value(x, approximate)
    if found is not None:
        return found
    work = wide("gelu", x)
    low = near(work)  # as in the pullback: XLA computes one Φ for both
    phi = _sigmoid(low, low * low) if approximate == "tanh" else 0.5 * host.arrays.erfc(low * -_HALF)
    return narrow(host.arrays.times(work, phi), x)


def gelu_pulled(dy: Any, x: Any, approximate: str) -> Any:
    """Give dy times the slope at x, by the host's own operation, or the formula."""
    host = hosts.of(x)
    fused = host.fused.get("gelu")
    found = None if fused is None else fused.pull(dy, x, approximate)
    if found is not None:
        return found
    return wide("gelu", dy) * _both(near(wide("gelu", x)), approximate)[1]


def gelu_both(x: Any, approximate: str) -> tuple[Any, Callable[[Any], Any]]:
    """Give x·Φ(x), and what takes a cotangent of it to one of x; the formula computes one Φ for both."""
    fused = hosts.of(x).fused.get("gelu")
    found = None if fused is None else fused.value(x, approximate)
    if found is not None:
        return found, lambda dy: gelu_pulled(dy, x, approximate)
    work = wide("gelu", x)
    phi, slope = _both(near(work), approximate)
    return narrow(hosts.of(x).arrays.times(work, phi), x), lambda dy: wide("gelu", dy) * slope


def _both(x: Any, approximate: str) -> tuple[Any, Any]:
    """Give Φ(x) and the slope, of an x that is not far."""
    if approximate == "tanh":
        squared = x * x
        t = _sigmoid(x, squared)
        return t, t * (1 + x * (1 - t) * (_TWICE + (3 * _CUBE * _TWICE) * squared))
    z = x * -_HALF
    erfc = hosts.of(x).arrays.erfc
    bend = x * (namespace(x).exp(-(z * z)) * _ROOT)  # erfc has it inside, too: XLA computes one exponential
    del x  # in eager mode few arrays stay near the processor
    phi = 0.5 * erfc(z)
    return phi, phi + bend


def _sigmoid(x: Any, squared: Any) -> Any:
    return hosts.of(x).arrays.sigmoid(x * (_TWICE + (_CUBE * _TWICE) * squared))


def _settled(offered: Any, x: Any, approximate: str) -> Any:
    require_word("gelu", "approximate", approximate, FORMS)
    return offered(x, approximate)


@own(_settled)
@custom_gradient
@example(np.array([0.7, -1.3, 2.1]))
@example(np.array([0.7, -1.3, 2.1]), approximate="tanh")
def gelu(x: T, *, approximate: str = "none") -> tuple[T, Function]:
    """Give x·Φ(x), and keep nothing but x.

    Args:
        x: Any real values.
        approximate: `"none"`, or `"tanh"` for the form of the first transformers.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.gelu(np.array([-10.0, 0.0, 10.0])).round(3).tolist()
        [-0.0, 0.0, 10.0]

    Do not use it with a gate beside it: `geglu` keeps less.
    """

    def grad(dy: Any) -> Any:
        return gelu_pulled(dy, x, approximate)

    return gelu_of(x, approximate), grad
