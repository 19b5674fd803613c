"""rms_norm: x·r·scale with r = 1/√(mean x² + ε), kept as its inputs alone.

    with u = dy·scale:   dx = r·(u − x·mean(u·x)/(mean x² + ε)),   dscale = Σ dy·x·r over the other axes

r is computed again in the pullback: the frameworks' own keep it, and TensorFlow every step of the way to it.
There is nothing faster that keeps as little: PyTorch's kernel keeps r, one number per row.

Domain: every x whose squares are in the range of the dtype (of float32 where that is a half): below 1e19 in
float32. Beyond, the row is 0, as in the frameworks' own. Edges: ε > 0 makes a row of zeros 0; ε = 0 makes it
NaN. Infinities and NaN make a row NaN. After B. Zhang and R. Sennrich, Root mean square layer normalization,
2019 (arXiv:1910.07467).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.define import custom_gradient
from pullback.elementwise import unbroadcast
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.namespace import namespace
from pullback.ops.reduced import Axis, axes_of, narrow, wide
from pullback.options import require_number
from pullback.typed import T

_X = np.array([[0.7, -1.3, 2.1], [0.4, 0.9, -2.6]])


@custom_gradient
@example(_X, np.array([1.1, 0.7, -0.4]))
@example(_X, axis=0, eps=1e-3)
def rms_norm(x: T, scale: Any = None, *, axis: Axis = -1, eps: float = 1e-6) -> tuple[T, Function]:
    """Divide by the root of the mean square along axes, and keep nothing but the inputs.

    Args:
        x: Any real values.
        scale: What the result is multiplied with, if anything; it broadcasts to x.
        axis: The axis, or axes, of one mean.
        eps: What is added to the mean square.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.rms_norm(np.array([3.0, -3.0]), np.array([1.0, 2.0])).round(3).tolist()
        [1.0, -2.0]

    Do not use it where the mean matters: `layer_norm` takes it away.
    """
    require_number("rms_norm", "eps", eps, least=0, fix="eps=1e-6")
    work = wide("rms_norm", x)
    y = work * (1 / namespace(x).sqrt(_square(work, axes_of("rms_norm", x, axis), eps)))

    def grad(dy: Any) -> Any:
        return _pulled(dy, x, scale, axis, eps)

    return narrow(y if scale is None else y * wide("rms_norm", scale), x), grad


def _square(x: Any, axes: tuple[int, ...], eps: float) -> Any:
    return namespace(x).mean(x * x, axis=axes, keepdims=True) + eps


def _pulled(dy: Any, x: Any, scale: Any, axis: Axis, eps: float) -> Any:
    xp, axes = namespace(x), axes_of("rms_norm", x, axis)
    work, dy = wide("rms_norm", x), wide("rms_norm", dy)
    square = _square(work, axes, eps)
    parts: tuple[Any, ...] = ()
    r, terms = 1 / xp.sqrt(square), dy * work
    if scale is not None:
        parts, factor = (unbroadcast(terms * r, like=scale),), wide("rms_norm", scale)
        terms, dy = terms * factor, dy * factor
    mean = xp.mean(terms, axis=axes, keepdims=True) / square
    del terms  # in eager mode few arrays stay near the processor
    return (dy - work * mean) * r, *parts
