"""The short way through eager mode, which nearly every call takes.

It is for a rule that is known to reach no tensor beside those of the call (`closed.py`) and to draw no random
numbers, whose body gives one new floating tensor and a `grad` that closes over tensors and constants. The
invariants are those of `eager.py` and `residuals.py`, kept in two functions instead of many: a Python call
costs as much as a small operation. Whatever is unusual goes the long way, with what the body has returned.
"""

from __future__ import annotations

import sys
from types import CellType, FunctionType
from typing import Any

import torch

from pullback.hosts.torch import orders, private, run, surroundings
from pullback.hosts.torch.arrays import FLOATING
from pullback.hosts.torch.nodes import named_nodes

_TENSOR, _PARAMETER = torch.Tensor, torch.nn.Parameter

_CONSTANTS = frozenset((int, float, bool, str, type(None)))
_is_grad_enabled, _autocasting = torch.is_grad_enabled, surroundings.autocasting
_set_grad_enabled = private.set_grad_enabled
_takes_one: dict[int, Any] = {}  # the code of `grad`s that take one cotangent, by its id, which it keeps


def apply(operation: Any, tensors: list[Any]) -> tuple[list[Any] | None, Any]:
    """Run a call and record it: its output; or None, and what a body that was run has returned, in a box."""
    rule = operation.plan.rule
    _set_grad_enabled(False)  # it reaches nothing that somebody differentiates but its arguments
    try:
        result = rule.body(*tensors)
    except RuntimeError as error:
        run.explain(error, rule.where)
        raise
    finally:
        _set_grad_enabled(True)
    if type(result) is not tuple or len(result) != 2:
        return None, (result,)
    output, grad = result
    if (
        type(output) is not _TENSOR
        or output.dtype not in FLOATING
        or output.requires_grad
        or type(grad) is not FunctionType
        or grad.__kwdefaults__ is not None
        or grad.__closure__ is None
        or _autocasting()
    ):
        return None, (result,)
    code = grad.__code__
    if id(code) not in _takes_one:
        if not operation.takes_one(grad):
            return None, (result,)
        _takes_one[id(code)] = code
    saved = list(tensors)
    recipe: list[Any] = []
    # Nobody else keeps the output if the pair, the name `output` and the argument of `getrefcount` are all.
    holders = 3
    for cell in grad.__closure__:
        try:
            content = cell.cell_contents
        except ValueError:  # not filled yet
            return None, (result,)
        kind = type(content)
        if kind is _TENSOR or kind is _PARAMETER:
            for place, other in enumerate(saved):
                if other is content:
                    recipe.append(place)
                    break
            else:
                recipe.append(len(saved))
                saved.append(content)
                if content is output:
                    holders = 5  # the cell and the list beside them
        elif kind in _CONSTANTS:
            recipe.append(cell)
        else:
            return None, (result,)
    content = other = None
    if sys.getrefcount(output) > holders:
        return None, (result,)
    for tensor in tensors:
        if tensor.requires_grad:
            record = (operation, recipe, code, grad.__globals__, grad.__name__, grad.__defaults__)
            return [node_of(rule.name)([record, saved, output], *tensors)], None
    return [output], None


class ShortNode(torch.autograd.Function):
    """The node of one call in the graph."""

    @staticmethod
    def forward(ctx: Any, given: list[Any], *inputs: Any) -> Any:
        ctx.record, saved, output = given
        ctx.save_for_backward(*saved)
        return output

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        operation, recipe, code, space, name, defaults = ctx.record
        saved = ctx.saved_tensors
        cells = []
        for part in recipe:
            cells.append(CellType(saved[part]) if type(part) is int else part)
        grad = FunctionType(code, space, name, defaults, tuple(cells))
        count = operation.plan.count
        if _is_grad_enabled() or _autocasting():
            return None, *_unusual(operation, list(saved[:count]), grad, cotangent)
        try:
            returned = grad(cotangent)
        except RuntimeError as error:
            run.explain(error, operation.where)
            raise
        given = returned if type(returned) is tuple else (returned,)
        if len(given) == count:
            for found, like in zip(given, saved):
                if (
                    type(found) is not _TENSOR
                    or found.dtype is not like.dtype
                    or found.shape != like.shape  # another device is refused by PyTorch itself
                ):
                    break
            else:
                return None, *given
        return None, *operation.pullback(saved[:count], grad).settled(returned).inputs


def _unusual(operation: Any, inputs: list[Any], grad: Any, cotangent: Any) -> list[Any]:
    """Pull back while somebody records it, or under an autocast that the body did not have."""
    kept = operation.pullback(inputs, grad)
    with surroundings.autocast_as(None):
        if _is_grad_enabled():
            return orders.again(operation, inputs, (), [cotangent], None, kept)
        return kept([cotangent]).inputs


node_of = named_nodes(ShortNode)
