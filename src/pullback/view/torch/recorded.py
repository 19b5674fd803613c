"""The graph that autograd recorded, and what is read of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def behind(tensors: Sequence[Any]) -> Iterator[Any]:
    """Go through the nodes that tensors were computed by, each once."""
    waiting, seen = [tensor.grad_fn for tensor in tensors], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting += [after for after, _ in node.next_functions]


def refuse_first_order_only(gradients: Sequence[Any]) -> None:
    """Raise what `once_differentiable` put into the graph: asked for some inputs only, PyTorch skips it."""
    nodes = behind([gradient for gradient in gradients if gradient is not None])
    if any(type(node).__name__ == "Error" for node in nodes):
        raise RuntimeError("a function marked with once_differentiable is differentiated twice")
