"""The short way through eager mode, which nearly every call takes.

It is for a call of tensors alone whose body, heard before, captures no tensor, and gives one new floating
tensor and a `grad` that closes over tensors and constants. The invariants are those of `eager.py` and
`residuals.py`, kept in two functions instead of many: a Python call costs as much as a small operation.
Whatever is unusual goes the long way, with what the body has returned.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any

import torch

from pullback import contract
from pullback.call import Call, CallPullback
from pullback.hosts.torch import heard, orders, run, surroundings
from pullback.hosts.torch.nodes import Record, named_nodes
from pullback.rule import global_names

_TENSOR, _PARAMETER = torch.Tensor, torch.nn.Parameter
_FLOATING = frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))
_CONSTANTS = frozenset((int, float, bool, str, type(None)))
_STEADY = _CONSTANTS | {ModuleType, FunctionType, BuiltinFunctionType, type}
_OPEN = "what PyTorch's short way needs to know"
_is_grad_enabled, _autocasting = torch.is_grad_enabled, surroundings.autocasting


class _Open:
    """What is known of a rule that may take the short way."""

    __slots__ = ("around", "code", "heard", "record")

    def __init__(self, call: Call, known: heard.Heard) -> None:
        self.heard = known
        self.record: Record = node_of(call)
        self.around = set(map(id, call.rule.function.__closure__ or ()))  # cells that outlive a call
        self.code: Any = None  # of a `grad` that is known to take one cotangent


def apply(call: Call, tensors: Sequence[Any]) -> tuple[list[Any] | None, Any]:
    """Run a call and record it: its output; or None, and what a body that was run was given and returned."""
    rule = call.rule
    known = rule.memo.get(_OPEN)
    if known is None:
        listened = heard.of(call)
        if listened is None:
            return None, None
        known = rule.memo[_OPEN] = _Open(call, listened)
    if not known.heard.quiet:  # it draws random numbers, or reaches tensors
        return None, None
    given = list(tensors)
    moving = False
    for place, tensor in enumerate(tensors):
        if tensor.requires_grad:
            moving = True
            given[place] = tensor.detach()
            if place:  # one that stands twice is one for the body too
                for i in range(place):
                    if tensors[i] is tensor:
                        given[place] = given[i]
    try:
        result = rule.body(*given)
    except RuntimeError as error:
        run.explain(error, rule.where)
        raise
    if type(result) is not tuple or len(result) != 2:
        return None, (given, result)
    output, grad = result
    if (
        type(output) is not _TENSOR
        or output.dtype not in _FLOATING
        or output.requires_grad
        or type(grad) is not FunctionType
        or _autocasting()
    ):
        return None, (given, result)
    code = grad.__code__
    if code is not known.code:
        if not contract.takes_one(grad) or not _is_steady(grad):
            return None, (given, result)
        known.code = code
    closure = grad.__closure__
    if closure is None or grad.__kwdefaults__ is not None:
        return None, (given, result)
    count = len(given)
    met = given.copy()
    recipe: list[Any] = []
    holders = 3  # of the output, if nobody keeps it: the pair, a name here, and the question
    for cell in closure:
        try:
            content = cell.cell_contents
        except ValueError:  # not filled yet
            return None, (given, result)
        kind = type(content)
        if kind is _TENSOR or kind is _PARAMETER:
            for place, other in enumerate(met):
                if other is content:
                    recipe.append(place)
                    break
            else:
                if content.requires_grad or id(cell) in known.around:  # captured, or not of this call
                    return None, (given, result)
                recipe.append(len(met))
                met.append(content)
                if content is output:
                    holders = 5  # the cell, and the list
        elif kind in _CONSTANTS:
            recipe.append(cell)
        else:
            return None, (given, result)
    content = other = None
    if sys.getrefcount(output) > holders:
        return None, (given, result)
    call.output_tree, call.statics, call.tensors = None, contract.ONE, ()
    if not moving:
        return [output], None
    met[:count] = tensors
    record = (call, recipe, code, grad.__globals__, grad.__name__, grad.__defaults__)
    return [known.record([record, met, output], *tensors)], None


def _is_steady(grad: Any) -> bool:
    """Tell whether a `grad` names no globals but code and constants; any other is looked at on every call."""
    space = grad.__globals__
    return all(type(space.get(name)) in _STEADY for name in global_names(grad.__code__))


class ShortNode(torch.autograd.Function):
    """The node of one call in the graph."""

    @staticmethod
    def forward(ctx: Any, given: list[Any], *inputs: Any) -> Any:
        ctx.record, saved, output = given
        ctx.save_for_backward(*saved)
        return output

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        call, recipe, code, space, name, defaults = ctx.record
        saved = ctx.saved_tensors
        cells = [CellType(saved[part]) if type(part) is int else part for part in recipe]
        grad = FunctionType(code, space, name, defaults, tuple(cells))
        if _is_grad_enabled() or _autocasting():
            return None, *_unusual(call, saved, grad, cotangent)
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
                return None, *given
        return None, *contract.settle(returned, call, saved[: call.count], (), grad).inputs


def _unusual(call: Call, saved: Sequence[Any], grad: Any, cotangent: Any) -> list[Any]:
    """Pull back while somebody records it, or under an autocast that the body did not have."""
    inputs = list(saved[: call.count])
    kept = CallPullback(call, inputs, grad, "whole", ())
    with surroundings.autocast_as(None):
        if _is_grad_enabled():
            return orders.again(call, inputs, (), [cotangent], None, kept)
        return kept([cotangent]).inputs


node_of = named_nodes(ShortNode)
