"""Under `torch.func` and in forward mode: an operation handed down, one transform at a time.

Each transform takes its wrapping off the tensors, has the operation run by the next one outwards, and adds
what it is there for. `grad` records a node of its own, which runs the body again at its level. `jvp` computes
the tangents beside the values with ordinary operations, so that every transform further out sees them; a
`jvp` method of a `torch.autograd.Function` is not differentiated again, and forward mode over forward mode
is silently zero there. `vmap` hands down the operation on whole batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.autograd import forward_ad

from pullback.hosts.operation import Operation, filled, fitted
from pullback.hosts.torch import (
    captures,
    eager,
    effects,
    forward,
    orders,
    pinned,
    private,
    state,
    surroundings,
)
from pullback.hosts.torch.batched import Batched, whole
from pullback.hosts.torch.nodes import named_nodes
from pullback.hosts.torch.outputs import apart, mark_rigid


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation so that everybody around it differentiates it by its own pullback."""
    tensors = [private.alive(tensor) for tensor in tensors]
    transform = private.innermost()
    if transform is None:
        if private.carrying(tensors):
            return eager.apply_pushing(operation, tensors)
        return eager.apply(operation, tensors, below=True)
    kind = transform.key()
    if kind == private.VMAP:
        size, level = transform.batch_size(), transform.level()
        batches = [whole(tensor, level, size) for tensor in tensors]
        with transform.lower():
            outputs = apply(Batched(operation, transform.randomness()), batches)
        return [private.batch(output, level) for output in outputs]
    if kind == private.FUNCTIONALIZE:
        level, tensors = transform.level(), private.bare(tensors)
        with transform.lower():
            outputs = apply(operation, tensors)
        return private.functional(outputs, level)
    tensors = private.lift(transform, tensors)
    if kind == private.JVP:
        return _pushed(operation, tensors, transform)
    if kind != private.GRAD:
        raise NotImplementedError(
            f"{operation.where}: torch.func.{kind.name.lower()} takes no custom gradient"
        )
    with private.single_level():
        return list(node_of(operation.name)(_Level(operation, transform), *tensors))


# ── forward mode ─────────────────────────────────────────────────────────────────────────────────────────


def _pushed(operation: Operation, tensors: list[Any], transform: Any) -> list[Any]:
    """Run an operation on the values, and push the tangents beside it."""
    pairs = [forward_ad.unpack_dual(tensor) for tensor in tensors]
    values, tangents = [pair.primal for pair in pairs], [pair.tangent for pair in pairs]
    state = surroundings.drawn(operation)
    level = transform.level()
    with transform.lower():
        outputs = apply(operation, private.unwrapped(values, level))
    outputs = private.wrapped(outputs, level)
    if all(tangent is None for tangent in tangents) or not private.pushes():
        return outputs
    with surroundings.redrawn(operation, state):
        pushed = fitted(forward.push(operation, values, tangents), outputs, operation)
    return [
        output if tangent is None else forward_ad.make_dual(output, tangent.to(output.dtype))
        for output, tangent in zip(apart(outputs, values), pushed)
    ]


# ── reverse mode ─────────────────────────────────────────────────────────────────────────────────────────


class _Level:
    """What the node of one level knows of the call."""

    __slots__ = ("autocast", "first", "operation", "state", "transform")

    def __init__(self, operation: Operation, transform: Any) -> None:
        self.operation = operation
        self.transform = transform
        self.autocast = surroundings.autocast()
        self.state = surroundings.drawn(operation)
        self.first = pinned.Noted()


class LevelNode(private.SingleLevelFunction):
    """The node of one call in the graph of one level."""

    @staticmethod
    def forward(ctx: Any, at: _Level, *tensors: Any) -> Any:
        level = at.transform.level()
        with at.first.of(at.operation), private.below(at.transform):
            outputs = apply(at.operation, private.unwrapped(list(tensors), level))
        outputs = private.wrapped(outputs, level)
        at.transform = None
        ctx.at = at
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        mark_rigid(ctx, outputs)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        # `torch.func.vjp` may be asked when its transform is over, which leaves tensors wrapped
        operation, tensors = ctx.at.operation, [private.alive(tensor) for tensor in ctx.saved_tensors]
        with surroundings.autocast_as(ctx.at.autocast):
            with surroundings.redrawn(operation, ctx.at.state):
                pull = orders.rerun(operation, tensors)
            ctx.at.first.require(operation, pull, tensors)
            got = pull(cotangents)
            given = orders.following(operation, tensors, filled(pull, cotangents), got)
        return None, *given


node_of = named_nodes(LevelNode)


def handed(operation: Operation, tensors: Sequence[Any]) -> list[Any]:
    """Hand a call of the user's down through the transforms."""
    from pullback.hosts.torch.captures.closure_convert import closure_convert

    private.handed.count += 1
    try:
        return apply(*closure_convert(operation, list(tensors)))
    except captures.MissedError:
        effects.remember(operation, reaches=True)
        with state.put_back():
            return apply(*closure_convert(operation, list(tensors)))
