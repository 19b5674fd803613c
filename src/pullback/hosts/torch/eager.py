"""Eager mode: run the body unrecorded, and record the whole of it as one node of the graph.

Invariant: what the node keeps goes through `save_for_backward`: the inputs, and the tensors that `grad`
closes over. So a change in place is an error, the memory is freed when a native operation frees it, and the
hooks of `torch.utils.checkpoint` and of off-loading see it. When somebody records the pullback (a higher
derivative), the body is run again from its inputs, this time recorded, so that what it keeps for `grad`
depends on the inputs as it should.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pullback.hosts.base import Operation, Pullback
from pullback.hosts.torch import captures, orders, surroundings
from pullback.hosts.torch.outputs import fresh
from pullback.hosts.torch.residuals import Kept


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation, and record it if anybody may differentiate it."""
    if not torch.is_grad_enabled():  # nobody differentiates: keep nothing
        return operation.forward(tensors)[0]
    state = surroundings.drawn(operation)
    with torch.no_grad():
        outputs, pull, variables = captures.run(operation, tensors)
    inputs = tensors
    if variables:
        pull.require(variables)
        inputs = tensors + variables
    for tensor in inputs:
        if tensor.requires_grad:
            break
    else:
        return outputs
    node = _Recorded(operation, pull, len(tensors), state)
    return list(_record(node, fresh(outputs, inputs), *inputs))


class _Recorded:
    """What a node keeps of one call, apart from its tensors."""

    __slots__ = ("autocast", "count", "kept", "operation", "outputs", "state")

    def __init__(self, operation: Operation, pull: Pullback, count: int, state: Any) -> None:
        self.operation = operation
        self.kept = Kept(operation, pull)
        self.count = count  # of the tensors of the call; captured variables follow them
        self.autocast = surroundings.autocast()
        self.state = state  # of the random numbers, for a body that is known to draw some

    def first(self, saved: Sequence[Any], variables: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Pull cotangents back, when nobody records it."""
        got = self.kept.refilled(saved, self.count)(cotangents, variables)
        self.kept.empty()
        return got.inputs + got.variables if variables else got.inputs

    def again(self, inputs: list[Any], variables: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Pull cotangents back while somebody records it."""
        with surroundings.redrawn(self.operation, self.state):
            pull = self.operation.forward(inputs)[1]
        got = pull(cotangents, variables)
        return orders.following(self.operation, inputs, pull.fill(cotangents), got) + got.variables


class Node(torch.autograd.Function):
    """The node of one call in the graph."""

    @staticmethod
    def forward(ctx: Any, recorded: _Recorded, outputs: list[Any], *inputs: Any) -> Any:
        ctx.recorded = recorded
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, *recorded.kept.take(inputs, outputs))
        rigid = [y for y in outputs if not (y.dtype.is_floating_point or y.dtype.is_complex)]
        if rigid:
            ctx.mark_non_differentiable(*rigid)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        recorded = ctx.recorded
        saved = ctx.saved_tensors
        inputs = len(ctx.needs_input_grad) - 2
        variables = saved[recorded.count : inputs]
        with surroundings.autocast_as(recorded.autocast):
            if torch.is_grad_enabled():
                given = recorded.again(list(saved[: recorded.count]), variables, cotangents)
            else:
                given = recorded.first(saved, variables, cotangents)
        return None, None, *given


# `Function.apply` also serves transforms, which do not come here.
_record = super(torch.autograd.Function, Node).apply
