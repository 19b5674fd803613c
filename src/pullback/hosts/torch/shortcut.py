"""The shorter way through eager mode, which nearly every call takes but the first.

It is for a rule that is known to reach no tensor beside those of the call (`closed.py`) and to draw no random
numbers, whose body gives one new floating tensor and a `grad` that closes over tensors and constants. The
invariants are those of `eager.py` and `residuals.py`, kept in two functions instead of many: a Python call
costs as much as a small operation. Whatever is unusual goes the long way, with what the body has returned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

import torch

from pullback.hosts.closed import watched
from pullback.hosts.torch import effects, orders, private, run, surroundings
from pullback.hosts.torch.arrays import FLOATING
from pullback.hosts.torch.nodes import named_nodes

_TENSOR, _PARAMETER = torch.Tensor, torch.nn.Parameter
_CONSTANTS = frozenset((int, float, bool, str, type(None)))
_is_grad_enabled, _autocasting = torch.is_grad_enabled, surroundings.autocasting
_transforming, _level = private.transforming, private.level
_set_grad_enabled, _getrefcount = private.set_grad_enabled, sys.getrefcount


def shortcut(operation: Any, record: Callable[..., list[Any]]) -> Callable[[list[Any]], Any]:
    """Give what runs further calls of a plan and records them; None is its answer to a call that is unusual.

    `record` is the long way, for what a body has returned.
    """
    host, body, node = operation.host, operation.plan.rule.body, node_of(operation.name)
    names, known = watched(operation), effects.of(operation)
    assert known is not None
    known_code: Any = None  # of a `grad` that is known to take one cotangent, and its globals
    space: Any = None
    count = operation.plan.count

    def run_shortly(tensors: list[Any]) -> Any:
        nonlocal known_code, space
        if (
            not _is_grad_enabled()
            or _transforming()
            or _autocasting()
            or _level() >= 0
            or host.bypassed is not None
            or not known.quiet
        ):
            return None
        try:
            for look, value in names:
                if look() is not value:
                    return forgotten()
        except ValueError:  # a cell that is empty now
            return forgotten()
        _set_grad_enabled(False)  # it reaches nothing that somebody differentiates but its arguments
        try:
            result = body(*tensors)
        except RuntimeError as error:
            run.explain(error, operation.where)
            raise
        finally:
            _set_grad_enabled(True)
        if type(result) is not tuple or len(result) != 2:
            return unusual(tensors, result)
        output, grad = result
        if (
            type(output) is not _TENSOR
            or output.dtype not in FLOATING
            or output.requires_grad
            or type(grad) is not FunctionType
            or grad.__kwdefaults__ is not None
        ):
            return unusual(tensors, result)
        code, closure = grad.__code__, grad.__closure__
        if closure is None:
            return unusual(tensors, result)
        if code is not known_code:
            if not operation.takes_one(grad):
                return unusual(tensors, result)
            known_code, space = code, grad.__globals__
        saved = tensors.copy()
        recipe: list[Any] = []
        holders = 3  # of an output that nobody else keeps: the pair, `output`, the argument of `getrefcount`
        for cell in closure:
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                return unusual(tensors, result)
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
                return unusual(tensors, result)
        content = other = None
        if _getrefcount(output) > holders:
            return unusual(tensors, result)
        for tensor in tensors:
            if tensor.requires_grad:
                kept = (operation, count, recipe, code, space, grad.__defaults__)
                return node([kept, saved, output], *tensors)
        return output

    def forgotten() -> None:
        """Close this way: a name means something else now."""
        operation.plan.shortcut.clear()

    def unusual(tensors: list[Any], result: Any) -> Any:
        """Go the long way, with what the body has returned."""
        again = type(operation)(operation.plan)
        values = record(again, tensors, (result,))
        return again.outputs.filled(values)

    return run_shortly


class ShortNode(torch.autograd.Function):
    """The node of one call in the graph."""

    @staticmethod
    def forward(ctx: Any, given: list[Any], *inputs: Any) -> Any:
        ctx.kept, saved, output = given
        ctx.save_for_backward(*saved)
        return output

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        operation, count, recipe, code, space, defaults = ctx.kept
        saved = ctx.saved_tensors
        cells = []
        for part in recipe:
            cells.append(CellType(saved[part]) if type(part) is int else part)
        grad = FunctionType(code, space, None, defaults, tuple(cells))
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
                # another device is refused by PyTorch itself
                if type(found) is not _TENSOR or found.shape != like.shape or found.dtype is not like.dtype:
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
