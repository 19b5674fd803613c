"""PyTorch's own activations and their pullbacks: one kernel each, which keeps its input alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from pullback.hosts.fused import Fused
from pullback.hosts.torch import private

_aten = torch.ops.aten


def _plain(pull: Callable[..., Any]) -> Callable[..., Any]:
    """Decline where somebody records, maps or pushes: not all of these kernels have all derivatives."""

    def pulled(*args: Any) -> Any:
        if torch.is_grad_enabled() or private.transforming() or private.level() >= 0:
            return None
        return pull(*args)

    return pulled


def _gelu(x: Any, approximate: str) -> Any:
    return functional.gelu(x, approximate=approximate)


def _gelu_pulled(dy: Any, x: Any, approximate: str) -> Any:
    return _aten.gelu_backward(dy, x, approximate=approximate)


FUSED = {
    "gelu": Fused(_gelu, _plain(_gelu_pulled)),
    "mish": Fused(functional.mish, _plain(_aten.mish_backward)),
    "silu": Fused(functional.silu, _plain(_aten.silu_backward)),
}
