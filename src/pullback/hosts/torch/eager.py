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
from pullback.hosts.torch import captures, heard, orders, surroundings
from pullback.hosts.torch.outputs import fresh
from pullback.hosts.torch.residuals import Kept

_set_grad_enabled = torch._C._set_grad_enabled  # a context of `torch.no_grad` costs as much as the body


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation, and record it if anybody may differentiate it."""
    if not torch.is_grad_enabled():  # nobody differentiates: keep nothing
        return operation.forward(tensors)[0]
    known = heard.of(operation)
    state = surroundings.states() if known is not None and known.random else None
    _set_grad_enabled(False)
    try:
        if known is not None and known.plain:
            outputs, pull = operation.forward(tensors)
            variables = captures.named_parameters(operation, tensors)
        else:
            outputs, pull, variables = captures.run(operation, tensors)
    finally:
        _set_grad_enabled(True)
    inputs = tensors
    if variables:
        pull.require(variables)
        inputs = tensors + variables
    for tensor in inputs:
        if tensor.requires_grad:
            break
    else:
        return outputs
    outputs = fresh(outputs, inputs)
    return list(_record(_Recorded(operation, pull, len(tensors), state), outputs, *inputs))


class _Recorded(Kept):
    """What a node keeps of one call, apart from its tensors."""

    __slots__ = ("autocast", "count", "state")

    def __init__(self, operation: Operation, pull: Pullback, count: int, state: Any) -> None:
        self.operation = operation
        self._pull = pull
        self.count = count  # of the tensors of the call; captured variables follow them
        self.autocast = surroundings.autocast()
        self.state = state  # of the random numbers, for a body that is known to draw some

    def pulled(self, saved: Sequence[Any], count: int, cotangents: Sequence[Any]) -> list[Any]:
        """Pull cotangents back to the inputs, of which there are `count`."""
        variables = saved[self.count : count]
        if torch.is_grad_enabled():
            return self.again(list(saved[: self.count]), variables, cotangents)
        got = self.refilled(saved, self.count)(cotangents, variables)
        self.release()
        return got.inputs + got.variables if variables else got.inputs

    def again(self, inputs: list[Any], variables: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Pull cotangents back while somebody records it: the body runs again, recorded too."""
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
        ctx.save_for_backward(*recorded.take(inputs, outputs))
        rigid = [y for y in outputs if not (y.dtype.is_floating_point or y.dtype.is_complex)]
        if rigid:
            ctx.mark_non_differentiable(*rigid)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        recorded, saved = ctx.recorded, ctx.saved_tensors
        count = len(ctx.needs_input_grad) - 2
        if recorded.autocast is None and not surroundings.autocasting():
            if recorded.quick and cotangents[0] is not None and not torch.is_grad_enabled():
                return None, None, *recorded.quickly(saved, cotangents[0])
            return None, None, *recorded.pulled(saved, count, cotangents)
        with surroundings.autocast_as(recorded.autocast):
            return None, None, *recorded.pulled(saved, count, cotangents)


# `Function.apply` also serves transforms, which do not come here.
_record = super(torch.autograd.Function, Node).apply
