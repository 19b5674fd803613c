"""The shorter way through eager mode, which nearly every call takes but the first.

It is for a rule that is known to reach no tensor beside those of the call (`closed.py`) and to draw no random
numbers, whose body gives a new floating tensor, or a tuple of such, and a `grad` that closes over tensors and
constants. The invariants are those of `eager.py` and `residuals.py`, kept in three functions instead of many:
a Python call costs as much as a small operation. Whatever is unusual goes the long way, with what the body
has returned.
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
_transforming, _level, _getrefcount = private.transforming, private.level, sys.getrefcount
_jit_tracing = private.jit_tracing


def shortcut(operation: Any, record: Callable[..., list[Any]]) -> Callable[[tuple[Any, ...]], Any]:
    """Give what runs further calls of a plan and records them; None is its answer to a call that is unusual.

    `record` is the long way, for what a body has returned.
    """
    host, node, way = operation.host, node_of(operation.name), _Way(operation)
    names, known, shortcuts = watched(operation), effects.of(operation), operation.plan.rule.shortcuts
    pick, whole = operation.plan.known.tensors, operation.plan.known.places is None
    assert known is not None

    def run_shortly(given: tuple[Any, ...]) -> Any:
        tensors = given if whole else pick(given)
        if (
            tensors is None
            or not host.ready(tensors)
            or not _is_grad_enabled()
            or _transforming()
            or _autocasting()
            or _level() >= 0
            or _jit_tracing()
            or host.bypassed is not None
            or not known.quiet
        ):
            return None
        try:
            for look, value in names:
                if look() is not value:  # a name means something else now
                    return shortcuts.clear()
        except ValueError:  # a cell that is empty now
            return shortcuts.clear()
        output = node(way, *tensors)
        if type(output) is not list:
            return output
        again = type(operation)(operation.plan)
        values = record(again, list(tensors), output)
        return again.outputs.filled(values)

    return run_shortly


class _Way:
    """What the calls of a plan have in common."""

    __slots__ = ("body", "code", "count", "many", "operation", "space")

    def __init__(self, operation: Any) -> None:
        self.operation = operation
        self.body = operation.plan.body
        self.count = operation.plan.count
        self.code: Any = None  # of a `grad` that is known to take the cotangents, and its globals
        self.space: Any = None
        self.many = 0  # outputs, and cotangents


class ShortNode(torch.autograd.Function):
    """The node of one call in the graph."""

    @staticmethod
    def forward(ctx: Any, way: _Way, *tensors: Any) -> Any:
        """Run the body unrecorded: it reaches nothing that somebody differentiates but its arguments.

        A list of what it returned stands for a call that is unusual. PyTorch hands it through.
        """
        try:
            result = way.body(*tensors)
        except RuntimeError as error:
            run.explain(error, way.operation.where)
            raise
        if type(result) is not tuple or len(result) < 2:
            return [result]
        grad = result[-1]
        # Who holds an output that nobody else keeps: the tuple that the body returned it in, `output`, and
        # the argument of `getrefcount`.
        outputs, holders = result[:-1], 4  # and this tuple
        if len(outputs) == 1 and type(outputs[0]) is tuple:
            outputs, holders = outputs[0], 3
        if (
            not outputs
            or type(grad) is not FunctionType
            or grad.__defaults__ is not None  # a tensor may stand there
            or grad.__kwdefaults__ is not None
        ):
            return [result]
        code, closure = grad.__code__, grad.__closure__
        if closure is None:
            return [result]
        if code is not way.code or len(outputs) != way.many:
            if not way.operation.takes(grad, len(outputs)):
                return [result]
            way.code, way.space, way.many = code, grad.__globals__, len(outputs)
        saved = [*tensors]
        recipe: list[Any] = []
        for cell in closure:
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                return [result]
            kind = type(content)
            if kind is _TENSOR or kind is _PARAMETER:
                for place, other in enumerate(saved):
                    if other is content:
                        recipe.append(place)
                        break
                else:
                    recipe.append(len(saved))
                    saved.append(content)
            elif kind in _CONSTANTS:
                recipe.append(cell)
            else:
                return [result]
        content = other = None
        for output in outputs:
            if type(output) is not _TENSOR or output.dtype not in FLOATING or output.requires_grad:
                return [result]
            others = _getrefcount(output) - holders  # if `grad` keeps it, a cell and the list
            if others and (others > 2 or not any(output is kept for kept in saved[way.count :])):
                return [result]
        ctx.kept = way, recipe, code, way.space
        ctx.save_for_backward(*saved)
        return outputs[0] if holders == 4 and len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        way, recipe, code, space = ctx.kept
        saved, count = ctx.saved_tensors, way.count
        cells = []
        for part in recipe:
            cells.append(CellType(saved[part]) if type(part) is int else part)
        grad = FunctionType(code, space, None, None, tuple(cells))
        if _is_grad_enabled() or _autocasting():
            return None, *_unusual(way.operation, list(saved[:count]), grad, cotangents)
        try:
            returned = grad(*cotangents)
        except RuntimeError as error:
            run.explain(error, way.operation.where)
            raise
        given = returned if type(returned) is tuple else (returned,)
        if len(given) == count:
            for found, like in zip(given, saved):
                # another device is refused by PyTorch itself
                if type(found) is not _TENSOR or found.shape != like.shape or found.dtype is not like.dtype:
                    break
            else:
                return None, *given
        return None, *way.operation.pullback(saved[:count], grad, len(cotangents)).settled(returned).inputs


def _unusual(operation: Any, inputs: list[Any], grad: Any, cotangents: tuple[Any, ...]) -> list[Any]:
    """Pull back while somebody records it, or under an autocast that the body did not have."""
    kept = operation.pullback(inputs, grad, len(cotangents))
    with surroundings.autocast_as(None):
        if _is_grad_enabled():
            return orders.again(operation, inputs, (), list(cotangents), None, kept)
        return kept(list(cotangents)).inputs


node_of = named_nodes(ShortNode)
