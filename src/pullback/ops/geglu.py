"""geglu: gelu(gate)·x, kept as its two inputs alone.

    dgate = dy·x·gelu′(gate),   dx = dy·gelu(gate)

gelu(gate) is computed again in the pullback: written as a product it would be kept, a third tensor of that
size. On PyTorch its own kernels run, and products are written into what these gave.

Domain and edges: those of gelu. The two are of one shape, or one broadcasts to the other.
After N. Shazeer, GLU variants improve transformer, 2020 (arXiv:2002.05202).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.elementwise import unbroadcast
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.ops.gelu import FORMS, gelu_both, gelu_of
from pullback.ops.reduced import real, wide
from pullback.options import require_word
from pullback.typed import T


@custom_gradient
@example(np.array([0.7, -1.3, 2.1]), np.array([0.4, 0.9, -2.6]))
@example(np.array([0.7, -1.3, 2.1]), np.array([0.4, 0.9, -2.6]), approximate="tanh")
@example(np.array([[0.7, -1.3, 2.1], [0.1, 0.2, 0.3]]), np.array([0.4, 0.9, -2.6]))
def geglu(gate: T, x: T, *, approximate: str = "none") -> tuple[T, Function]:
    """Give gelu(gate)·x, and keep nothing but the two.

    Args:
        gate: Any real values: what goes through the gelu.
        x: Any real values: what it is multiplied with.
        approximate: The form of the gelu: `"none"` or `"tanh"`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.geglu(np.array([20.0, 0.0]), np.array([3.0, 5.0])).round(3).tolist()
        [60.0, 0.0]

    Do not use it for one tensor that holds both: split it first.
    """
    require_word("geglu", "approximate", approximate, FORMS)

    def grad(dy: Any) -> tuple[Any, Any]:
        return _pulled(dy, gate, x, approximate)

    return _value(gate, x, approximate), grad


def _value(gate: Any, x: Any, approximate: str) -> Any:
    fused = hosts.of(gate).fused.get("geglu")
    found = None if fused is None else fused.value(gate, x, approximate)
    return gelu_of(gate, approximate) * real("geglu", x) if found is None else found


def _pulled(dy: Any, gate: Any, x: Any, approximate: str) -> tuple[Any, Any]:
    fused = hosts.of(gate).fused.get("geglu")
    found = None if fused is None else fused.pull(dy, gate, x, approximate)
    if found is not None:
        return found  # type: ignore[no-any-return]
    value, pull = gelu_both(wide("geglu", gate), approximate)
    dy = wide("geglu", dy)
    return unbroadcast(pull(dy * wide("geglu", x)), like=gate), unbroadcast(dy * value, like=x)
