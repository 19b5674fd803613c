"""PyTorch: the graph from the autograd graph.

Hooks on its nodes give the share of each edge. What autograd does not record, it does not know of: a value
that was detached, cast to whole numbers or taken out of PyTorch. So the calls of the function are heard while
it runs, and those that lose a gradient are drawn, too. Nodes are numbered as they are made, and so it is
known which call, in which module, made one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from pullback import tree
from pullback.graphs.framework import Asked, Sketch, Tracer


class Torch(Tracer):
    """Trace functions of PyTorch's tensors."""

    def owns(self, value: Any) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and hasattr(torch, "Tensor") and isinstance(value, torch.Tensor)

    def variable(self, value: Any) -> bool:
        import torch

        return isinstance(value, torch.nn.Parameter)

    def name(self, variable: Any, function: Any) -> str:
        from pullback.graphs.torch.hearing import Hearing

        hearing = Hearing(Asked(function, (), {}))
        hearing.named(function)
        return hearing.called_as(variable)

    def trained(self, variable: Any) -> bool:
        return bool(variable.requires_grad)

    untrained = "not required"

    def trace(self, asked: Asked) -> Sketch:
        import torch

        from pullback.graphs.torch.drawing import Drawing
        from pullback.graphs.torch.hearing import Hearing
        from pullback.hosts.torch import private

        arguments = asked.arguments(self.is_input)
        hearing = Hearing(asked)
        drawing = Drawing(asked, hearing)
        inputs = [_fresh(leaf) for leaf in arguments.inputs]
        for tensor, name in zip(inputs, asked.names(arguments)):
            drawing.end(tensor, name, "input")
        hearing.named(asked.function)
        args, kwargs = arguments.filled(inputs)
        outputs: list[Any] = []
        with torch.enable_grad(), private.uncompiled(), hearing.heard():
            try:
                outputs = tree.flatten(asked.function(*args, **kwargs))[0]
            except Exception as error:
                drawing.sketch.problem = hearing.untraced(error, inputs)
        return drawing.drawn([y for y in outputs if isinstance(y, torch.Tensor)])

    def recorded(self, target: Any, sources: Sequence[Any], names: Sequence[str]) -> Sketch:
        """Draw the graph that a tensor has."""
        from pullback.graphs.torch.drawing import Drawing
        from pullback.graphs.torch.hearing import Hearing

        asked = Asked(lambda: target, (), {})
        drawing = Drawing(asked, Hearing(asked))
        for source, name in zip(sources, names):
            drawing.end(source, name, "input")
        return drawing.drawn([target])


def _fresh(leaf: Any) -> Any:
    """Give a tensor of its own to a leaf, at which gradients end."""
    import torch

    tensor = leaf if isinstance(leaf, torch.Tensor) else torch.as_tensor(leaf)
    floating = tensor.is_floating_point() or tensor.is_complex()
    fresh = tensor.detach().clone()
    return fresh.requires_grad_() if floating else fresh


TRACER = Torch()
