"""Eager mode: run the body on its inputs cut off, and record the whole of it as one node of the graph.

Invariant: what the node keeps goes through `save_for_backward`: the inputs, and the tensors that `grad`
closes over. So a change in place is an error, the memory is freed when a native operation frees it, and the
hooks of `torch.utils.checkpoint` and of off-loading see it. When somebody records the pullback (a higher
derivative), the body is run again from its inputs, this time recorded, so that what it keeps for `grad`
depends on the inputs as it should; the values stay those that were kept (`pinned.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pullback.hosts.closed import is_closed
from pullback.hosts.operation import Operation, fitted
from pullback.hosts.torch import captures, effects, export, forward, orders, private, surroundings
from pullback.hosts.torch.nodes import named_nodes
from pullback.hosts.torch.outputs import apart, fresh, mark_rigid
from pullback.hosts.torch.residuals import Kept
from pullback.hosts.torch.shortcut import shortcut


def apply(operation: Operation, tensors: list[Any], below: bool = False) -> list[Any]:
    """Run an operation, `below` every transform if there are any; record it if anybody differentiates it."""
    if not torch.is_grad_enabled():  # nobody differentiates: keep nothing
        return (captures.below(operation, tensors) if below else operation.forward(tensors))[0]
    if is_closed(operation) and effects.is_quiet(operation):  # for the calls to come
        plan = operation.plan
        way = plan.way(tensors)
        if way not in plan.rule.shortcuts:
            plan.rule.shortcuts[way] = shortcut(operation, record)
    return record(operation, tensors, None, below)


def record(operation: Operation, tensors: list[Any], ran: Any, below: bool = False) -> list[Any]:
    """Run an operation, unless `ran` holds what its body has returned, and record it."""
    recorded = Recorded(operation, len(tensors))
    outputs, inputs = recorded.run(tensors, ran, below)
    del ran  # who else holds an output is asked by counting
    for tensor in inputs:
        if tensor.requires_grad:
            return list(node_of(operation.name)(recorded, outputs, *inputs))
    return outputs


def apply_pushing(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation on tensors that carry tangents, and push these too."""
    recorded = Recorded(operation, len(tensors))
    with private.without_tangents():
        outputs, inputs = recorded.run(tensors, None, True)
        outputs = apart(outputs, inputs)  # the tangent of an input is not that of an output
    recorded.pushing = tensors, outputs  # what is saved is not to be had before the node is done
    try:
        return list(node_of(operation.name)(recorded, outputs, *inputs))
    finally:
        recorded.pushing = None


class Recorded(Kept):
    """What a node keeps of one call, apart from its tensors."""

    __slots__ = ("autocast", "captured", "count", "pushing", "state")

    def __init__(self, operation: Operation, count: int) -> None:
        self.operation = operation
        self.count = count  # of the tensors of the call
        self.captured = 0  # variables, behind these
        self.autocast = surroundings.autocast() if surroundings.autocasting() else None
        self.pushing: Any = None  # the tensors and outputs, while their tangents are asked for
        self.state: Any = None  # of the random numbers, for a body that is known to draw some

    def run(self, tensors: list[Any], ran: Any, below: bool) -> tuple[list[Any], list[Any]]:
        """Run the body, if it was not run already: its outputs, and what it was given or captured."""
        if private.traced():
            export.warn(self.operation)
        known = effects.of(self.operation)
        state = surroundings.states() if known is None or known.random else None
        outputs, variables = captures.run(self.operation, tensors, self, ran, below)
        self.state = state if effects.draws(self.operation) else None
        inputs = tensors
        if variables:
            inputs = tensors + variables
            self.captured = len(variables)
            self.saved = [*self.saved, *variables]
        return fresh(outputs, inputs), inputs

    def pulled(self, saved: Sequence[Any], variables: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Pull cotangents back to the inputs, and to captured variables."""
        if torch.is_grad_enabled():
            inputs = list(saved[: self.count])
            kept = None if self.reruns else self.refilled(saved, self.count)
            return orders.again(self.operation, inputs, variables, cotangents, self.state, kept)
        got = self.refilled(saved, self.count)(cotangents, variables)
        return got.inputs + got.variables if variables else got.inputs


class Node(torch.autograd.Function):
    """The node of one call in the graph."""

    @staticmethod
    def forward(ctx: Any, recorded: Recorded, outputs: list[Any], *inputs: Any) -> Any:
        ctx.recorded = recorded
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*recorded.saved)
        recorded.watch(outputs)
        recorded.saved = ()
        mark_rigid(ctx, outputs)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        recorded, saved = ctx.recorded, ctx.saved_tensors
        variables = saved[len(saved) - recorded.captured :]
        with surroundings.autocast_as(recorded.autocast):
            return None, None, *recorded.pulled(saved, variables, cotangents)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        recorded = ctx.recorded
        operation = recorded.operation
        tensors, outputs = recorded.pushing
        with surroundings.redrawn(operation, recorded.state):
            pushed = forward.push(operation, tensors, tangents[2 : 2 + len(tensors)])
        pushed = fitted(pushed, outputs, operation)
        zero = torch.zeros_like  # what PyTorch wants for no tangent
        return tuple(
            zero(y) if dy is None and operation.host.differentiable(y) else dy
            for dy, y in zip(pushed, outputs)
        )


node_of = named_nodes(Node)
