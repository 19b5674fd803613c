"""What is read of the graph that autograd recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.hosts.torch.nodes import behind


def refuse_first_order_only(gradients: Sequence[Any]) -> None:
    """Raise what `once_differentiable` put into the graph: asked for some inputs only, PyTorch skips it."""
    nodes = behind([gradient for gradient in gradients if gradient is not None])
    if any(type(node).__name__ == "Error" for node in nodes):
        raise RuntimeError("a function marked with once_differentiable is differentiated twice")
