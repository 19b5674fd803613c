"""Under `torch.func` and in forward mode: the same operation, in the form that transforms can take apart.

A transform unwraps the tensors, runs the operation below itself, and asks for the derivative at its own
level. So nothing of the first run is kept: each level runs the body again from its inputs. Random numbers
are drawn as in the first run.
"""

from __future__ import annotations

from typing import Any

import torch

from pullback.hosts.base import Operation
from pullback.hosts.torch import captures, forward, orders, surroundings
from pullback.hosts.torch.outputs import apart


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation so that the transforms around it differentiate it by its own pullback."""
    captures.refuse(operation, tensors)
    return list(Transformed.apply(_State(operation), *tensors))


class _State:
    """What every level knows of the call."""

    __slots__ = ("autocast", "operation", "random")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.autocast = surroundings.autocast()
        self.random = surroundings.states()


class Transformed(torch.autograd.Function):
    """The operation, as transforms see it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(state: _State, *tensors: Any) -> Any:
        return tuple(apart(state.operation.forward(list(tensors))[0], tensors))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.state, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        rigid = [y for y in output if not (y.dtype.is_floating_point or y.dtype.is_complex)]
        if rigid:
            ctx.mark_non_differentiable(*rigid)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        operation, tensors = ctx.state.operation, list(ctx.saved_tensors)
        with surroundings.autocast_as(ctx.state.autocast):
            with surroundings.redrawn(operation, ctx.state.random):
                pull = operation.forward(tensors)[1]
            got = pull(cotangents)
            given = orders.following(operation, tensors, pull.fill(cotangents), got)
        return None, *given

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        operation, tensors = ctx.state.operation, list(ctx.saved_tensors)
        with surroundings.autocast_as(ctx.state.autocast):
            with surroundings.redrawn(operation, ctx.state.random):
                pull = operation.forward(tensors)[1]
            return tuple(forward.push(operation, pull, tensors, tangents))
