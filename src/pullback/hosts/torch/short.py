"""The short way through eager mode, which nearly every call takes.

It is for a call of tensors alone whose body, heard before, captures no tensor, and gives one new floating
tensor and a `grad` that closes over tensors and constants. The invariants are those of `eager.py` and
`residuals.py`, kept in two functions instead of many: a Python call costs as much as a small operation.
Whatever is unusual goes the long way, with what the body has returned.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import CellType, FunctionType
from typing import Any

import torch

from pullback import contract
from pullback.call import Call, CallPullback
from pullback.hosts.torch import heard, orders, run, surroundings
from pullback.hosts.torch.nodes import Record, named_nodes

_TENSOR, _PARAMETER = torch.Tensor, torch.nn.Parameter
_FLOATING = frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))
_CONSTANTS = frozenset((int, float, bool, str, type(None)))
_OPENED = "what PyTorch's short way needs to know"
_is_grad_enabled = torch.is_grad_enabled


def opened(call: Call) -> tuple[Any, Record, set[int]] | None:
    """Give what records a call whose body is known to draw no random numbers and to reach no tensor."""
    memo = call.rule.memo
    found = memo.get(_OPENED)
    if found is None:
        known = heard.of(call)
        if known is None:
            return None  # nobody has listened yet
        found = memo[_OPENED] = known, node_of(call), set(map(id, call.rule.function.__closure__ or ()))
    return found if found[0].quiet else None


def apply(call: Call, tensors: Sequence[Any], opened: Any) -> tuple[list[Any] | None, Any]:
    """Run a call and record it: its output; or None, and what the body was given and has returned."""
    moving = False
    given: list[Any] = []
    for tensor in tensors:
        if tensor.requires_grad:
            moving = True
            for known, cut in zip(tensors, given):  # one that stands twice is one for the body too
                if known is tensor:
                    tensor = cut
                    break
            else:
                tensor = tensor.detach()
        given.append(tensor)
    try:
        result = call.rule.body(*given)
    except RuntimeError as error:
        run.explain(error, call.rule.where)
        raise
    if type(result) is not tuple or len(result) != 2:
        return None, (given, result)
    output, grad = result
    if (
        type(output) is not _TENSOR
        or output.dtype not in _FLOATING
        or output.requires_grad
        or not contract.takes_one(grad)
        or surroundings.autocasting()
    ):
        return None, (given, result)
    closure = grad.__closure__
    if closure is None or grad.__kwdefaults__ is not None:
        return None, (given, result)
    _, record, around = opened
    met, saved = list(given), list(tensors)
    recipe: list[Any] = []
    holders = 3  # of the output, if nobody keeps it: the pair, a name here, and the question
    for cell in closure:
        try:
            content = cell.cell_contents
        except ValueError:  # not filled yet
            return None, (given, result)
        kind = type(content)
        if kind is _TENSOR or kind is _PARAMETER:
            for place, known in enumerate(met):
                if known is content:
                    recipe.append(place)
                    break
            else:
                if content.requires_grad or id(cell) in around:  # captured, or not of this call
                    return None, (given, result)
                recipe.append(len(saved))
                met.append(content)
                saved.append(content)
                if content is output:
                    holders = 6  # the cell, and the lists
        elif kind in _CONSTANTS:
            recipe.append(cell)
        else:
            return None, (given, result)
    content = known = None
    if sys.getrefcount(output) > holders:
        return None, (given, result)
    call.output_tree, call.statics, call.tensors = None, contract.ONE, ()
    if not moving:
        return [output], None
    made = (grad.__code__, grad.__globals__, grad.__name__, grad.__defaults__)
    del met
    return [record((call, recipe, made), [output], saved, *tensors)], None


class ShortNode(torch.autograd.Function):
    """The node of one call in the graph."""

    @staticmethod
    def forward(ctx: Any, record: Any, outputs: list[Any], saved: list[Any], *inputs: Any) -> Any:
        ctx.record = record
        ctx.save_for_backward(*saved)
        return outputs[0]

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        call, recipe, (code, space, name, defaults) = ctx.record
        saved = ctx.saved_tensors
        cells = [CellType(saved[part]) if type(part) is int else part for part in recipe]
        grad = FunctionType(code, space, name, defaults, tuple(cells))
        if _is_grad_enabled() or surroundings.autocasting():
            return None, None, None, *_unusual(call, saved, grad, cotangent)
        try:
            returned = grad(cotangent)
        except RuntimeError as error:
            run.explain(error, call.rule.where)
            raise
        given = returned if type(returned) is tuple else (returned,)
        if len(given) == call.count:
            for found, like in zip(given, saved):
                if (
                    type(found) is not _TENSOR
                    or found.dtype is not like.dtype
                    or found.shape != like.shape  # another device is refused by PyTorch itself
                ):
                    break
            else:
                return None, None, None, *given
        settled = contract.settle(returned, call, saved[: call.count], (), grad)
        return None, None, None, *settled.inputs


def _unusual(call: Call, saved: Sequence[Any], grad: Any, cotangent: Any) -> list[Any]:
    """Pull back while somebody records it, or under an autocast that the body did not have."""
    inputs = list(saved[: call.count])
    kept = CallPullback(call, inputs, grad, "whole", ())
    with surroundings.autocast_as(None):
        if _is_grad_enabled():
            return orders.again(call, inputs, (), [cotangent], None, kept)
        return kept([cotangent]).inputs


node_of = named_nodes(ShortNode)
