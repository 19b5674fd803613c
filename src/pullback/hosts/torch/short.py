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
from pullback.call import Call
from pullback.hosts.torch import heard, orders, run, surroundings
from pullback.rule import reach

_TENSOR, _PARAMETER = torch.Tensor, torch.nn.Parameter
_FLOATING = frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))
_CONSTANTS = frozenset((int, float, bool, str, type(None)))
_CODE = frozenset((ModuleType, FunctionType, BuiltinFunctionType, type))
_OPEN = "whether the body may take PyTorch's short way"
_is_grad_enabled, _set_grad_enabled = torch.is_grad_enabled, torch._C._set_grad_enabled


def is_open(call: Call) -> bool:
    """Tell whether the body is known to draw no random numbers and to reach no tensor."""
    found: bool | None = call.rule.memo.get(_OPEN)
    if found is None:
        known = heard.of(call)
        if known is None:
            return False  # nobody has listened yet
        # A name that means code today means no tensor tomorrow. Any other is looked at in every call.
        steady = all(type(value) in _CODE for _, value in reach(call.rule.function))
        found = call.rule.memo[_OPEN] = known.plain and not known.random and steady
    return found


def apply(call: Call, tensors: Sequence[Any]) -> tuple[list[Any] | None, Any]:
    """Run a call and record it: its output; or None, and what the body has returned."""
    _set_grad_enabled(False)
    try:
        result = call.rule.body(*tensors)
    except RuntimeError as error:
        run.explain(error, call.rule.where)
        raise
    finally:
        _set_grad_enabled(True)
    if type(result) is not tuple or len(result) != 2:
        return None, result
    output, grad = result
    if (
        type(output) is not _TENSOR
        or output.dtype not in _FLOATING
        or output.requires_grad
        or not contract.takes_one(grad)
        or surroundings.autocasting()
    ):
        return None, result
    closure = grad.__closure__
    if closure is None or grad.__kwdefaults__ is not None:
        return None, result
    saved = list(tensors)
    recipe: list[Any] = []
    holders = 3  # of the output, if nobody keeps it: the pair, a name here, and the question
    for cell in closure:
        try:
            content = cell.cell_contents
        except ValueError:  # not filled yet
            return None, result
        kind = type(content)
        if kind is _TENSOR or kind is _PARAMETER:
            for place, known in enumerate(saved):
                if known is content:
                    recipe.append(place)
                    break
            else:
                recipe.append(len(saved))
                saved.append(content)
                if content is output:
                    holders = 5  # the cell, and the list
        elif kind in _CONSTANTS:
            recipe.append(cell)
        else:
            return None, result
    content = known = None
    if sys.getrefcount(output) > holders:
        return None, result
    made = (grad.__code__, grad.__globals__, grad.__name__, grad.__defaults__)
    for tensor in tensors:
        if tensor.requires_grad:
            call.output_tree, call.statics, call.tensors = None, contract.ONE, ()
            return [_record((call, recipe, made), [output], saved, *tensors)], None
    return None, result


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
        if _is_grad_enabled() or surroundings.autocasting():
            return None, None, None, *_unusual(call, saved, cotangent)
        cells = [CellType(saved[part]) if type(part) is int else part for part in recipe]
        grad = FunctionType(code, space, name, defaults, tuple(cells))
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


def _unusual(call: Call, saved: Sequence[Any], cotangent: Any) -> list[Any]:
    """Pull back while somebody records it, or under an autocast that the body did not have."""
    inputs = list(saved[: call.count])
    with surroundings.autocast_as(None):
        if _is_grad_enabled():
            return orders.again(call, inputs, (), [cotangent], None)
        return call.forward(inputs)[1]([cotangent]).inputs


# `Function.apply` also serves transforms, which do not come here.
_record = super(torch.autograd.Function, ShortNode).apply
