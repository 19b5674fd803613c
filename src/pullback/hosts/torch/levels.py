"""The transforms of `torch.func` and the levels of forward mode that a call stands in.

PyTorch does not export how to ask for them. The functions are imported here and nowhere else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import forward_ad

transforming = torch._C._are_functorch_transforms_active


def pushing() -> bool:
    """Tell whether tangents are being pushed forward."""
    return forward_ad._current_level >= 0


def has_values(tensor: Any) -> bool:
    """Tell whether the numbers in a tensor can be looked at."""
    return not (
        torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        or tensor.is_meta
        or torch._C._len_torch_dispatch_stack()
    )


@contextlib.contextmanager
def left() -> Iterator[None]:
    """Step out of every transform, and push no tangents."""
    with temporarily_clear_interpreter_stack(), forward_ad._set_fwd_grad_enabled(False):
        yield
