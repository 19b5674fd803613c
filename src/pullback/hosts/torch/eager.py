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
from torch.autograd import forward_ad

from pullback.call import Call
from pullback.hosts.base import Operation, Pullback
from pullback.hosts.torch import captures, export, forward, heard, levels, orders, short, surroundings
from pullback.hosts.torch.outputs import apart, fresh, mark_rigid
from pullback.hosts.torch.residuals import Kept

_set_grad_enabled = torch._C._set_grad_enabled  # a context of `torch.no_grad` costs as much as the body


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation, and record it if anybody may differentiate it."""
    if not torch.is_grad_enabled():  # nobody differentiates: keep nothing
        return operation.forward(tensors)[0]
    if type(operation) is Call and operation.flat and short.is_open(operation):
        done, result = short.apply(operation, tensors)
        if done is not None:
            return done
        outputs, pull = operation.ran(tensors, result)
        del result  # who else holds an output is asked by counting
        outputs, inputs, state = fresh(outputs, tensors), tensors, None
    else:
        outputs, pull, inputs, state = _run(operation, tensors)
    for tensor in inputs:
        if tensor.requires_grad:
            break
    else:
        return outputs
    return list(_record(_Recorded(operation, pull, len(tensors), state), outputs, *inputs))


def apply_pushing(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation on tensors that carry tangents, and push these too."""
    with forward_ad._set_fwd_grad_enabled(False):
        outputs, pull, inputs, state = _run(operation, tensors)
        outputs = apart(outputs, inputs)  # the tangent of an input is not that of an output
    recorded = _Recorded(operation, pull, len(tensors), state)
    recorded.pushing = tensors  # what is saved is not to be had before the node is done
    try:
        return list(_record(recorded, outputs, *inputs))
    finally:
        recorded.pushing = None


def _run(operation: Operation, tensors: list[Any]) -> tuple[list[Any], Pullback, list[Any], Any]:
    """Run the body unrecorded: its outputs, its pullback, what it was given or captured, the random state."""
    if levels.traced():
        export.warn(operation)
    known = heard.of(operation)
    state = surroundings.states() if known is None or known.random else None
    enabled = torch.is_grad_enabled()
    _set_grad_enabled(False)
    try:
        outputs, pull, variables = captures.run(operation, tensors)
        state = state if heard.draws(operation) else None
    finally:
        _set_grad_enabled(enabled)
    inputs = tensors
    if variables:
        pull.require(variables)
        inputs = tensors + variables
    return fresh(outputs, inputs), pull, inputs, state


class _Recorded(Kept):
    """What a node keeps of one call, apart from its tensors."""

    __slots__ = ("autocast", "count", "pushing", "state")

    def __init__(self, operation: Operation, pull: Pullback, count: int, state: Any) -> None:
        self.operation = operation
        self._pull = pull
        self.count = count  # of the tensors of the call; captured variables follow them
        self.autocast = surroundings.autocast() if surroundings.autocasting() else None
        self.pushing: list[Any] | None = None  # the tensors, while their tangents are asked for
        self.state = state  # of the random numbers, for a body that is known to draw some

    def pulled(self, saved: Sequence[Any], count: int, cotangents: Sequence[Any]) -> list[Any]:
        """Pull cotangents back to the inputs, of which there are `count`."""
        variables = saved[self.count : count]
        if torch.is_grad_enabled():
            return orders.again(self.operation, list(saved[: self.count]), variables, cotangents, self.state)
        got = self.refilled(saved, self.count)(cotangents, variables)
        self.release()
        return got.inputs + got.variables if variables else got.inputs


class Node(torch.autograd.Function):
    """The node of one call in the graph."""

    @staticmethod
    def forward(ctx: Any, recorded: _Recorded, outputs: list[Any], *inputs: Any) -> Any:
        ctx.recorded = recorded
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*recorded.take(inputs, outputs))
        if not recorded.quick:
            mark_rigid(ctx, outputs)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        recorded, saved = ctx.recorded, ctx.saved_tensors
        if recorded.autocast is None and not surroundings.autocasting():
            if recorded.quick and cotangents[0] is not None and not torch.is_grad_enabled():
                return None, None, *recorded.quickly(saved, cotangents[0])
            count = len(ctx.needs_input_grad) - 2
            return None, None, *recorded.pulled(saved, count, cotangents)
        count = len(ctx.needs_input_grad) - 2
        with surroundings.autocast_as(recorded.autocast):
            return None, None, *recorded.pulled(saved, count, cotangents)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        recorded = ctx.recorded
        tensors = recorded.pushing
        with surroundings.redrawn(recorded.operation, recorded.state):
            return tuple(forward.push(recorded.operation, tensors, tangents[2 : 2 + len(tensors)]))


# `Function.apply` also serves transforms, which do not come here.
_record = super(torch.autograd.Function, Node).apply
