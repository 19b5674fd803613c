"""`torch.jit.trace`: a call is one Python function of the traced program.

Such a program keeps a `torch.autograd.Function` and those of its arguments that are no tensors, and calls it
with new tensors each time it runs. So the body runs inside of it, and nothing that was computed while the
program was traced may be among the arguments. `torch.jit.trace` traces a second time, unrecorded, and
compares: the node is there whether anybody differentiates or not.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from pullback.hosts.operation import Operation
from pullback.hosts.torch import captures, private
from pullback.hosts.torch.eager import Node, Recorded
from pullback.hosts.torch.nodes import named_nodes


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation as one node of a program that is being traced."""
    with private.not_jit_traced(), torch.enable_grad():
        met = [tensor for _, tensor in captures.captured_by(operation, tensors)[0]]
    captured = [t for t in met if t.requires_grad and all(t is not x for x in tensors)]
    return list(node_of(operation.name)(_Named(operation), len(tensors), *tensors, *captured))


class _Named:
    """An operation that prints as its name: programs are compared by what they print."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __repr__(self) -> str:
        return self.operation.name


class TracedNode(torch.autograd.Function):
    """The node of one call, and of each further one when the traced program runs."""

    @staticmethod
    def forward(ctx: Any, named: _Named, count: int, *inputs: Any) -> Any:
        recorded = Recorded(named.operation, count)
        # Cut off, whether they are differentiated or not: values are named after the frames that they pass.
        given = [tensor.detach() for tensor in inputs[:count]]
        with warnings.catch_warnings(), torch.enable_grad():  # recording tells what a body captures
            # What Python decides here, it decides anew in every run.
            warnings.simplefilter("ignore", torch.jit.TracerWarning)
            outputs, _ = recorded.run(given, None, False)
        recorded.saved = [*inputs[:count], *recorded.saved[count:]]
        return Node.forward(ctx, recorded, outputs, *inputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        got = Node.backward(ctx, *cotangents)
        frozen = len(ctx.needs_input_grad) - len(got)  # captured ones that nobody differentiates any more
        return *got, *[None] * frozen


node_of = named_nodes(TracedNode)
