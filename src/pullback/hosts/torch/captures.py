"""Finding tensors that reach a body through a closure while somebody differentiates them.

A rule has no cotangent for such a tensor, so its gradient would silently be None. A parameter is what a
variable is elsewhere: `grad` may answer for it by `variables=`. Names in reach of the body are looked at on
every recorded call, which is cheap. Whatever else a body touches (`self.w`, a helper's global) is seen by
listening to its operations: on the first recorded call of a body, and on every one if there was anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pullback.errors import CapturedTensorError
from pullback.hosts import refusals
from pullback.hosts.base import Operation, Pullback
from pullback.hosts.torch import heard, levels, surroundings
from pullback.rule import global_names

_TENSOR = torch.Tensor
# what is computed from a tensor's shape alone, or cuts it off
_CUT = {
    torch.Tensor.detach,
    torch.Tensor.data.__get__,  # type: ignore[attr-defined]
    torch.detach,
    torch.zeros_like,
    torch.ones_like,
    torch.empty_like,
    torch.full_like,
    torch.rand_like,
    torch.randn_like,
    torch.Tensor.new_zeros,
    torch.Tensor.new_ones,
    torch.Tensor.new_empty,
    torch.Tensor.new_full,
    torch.Tensor.new_tensor,
}


def run(operation: Operation, tensors: list[Any]) -> tuple[list[Any], Pullback, list[Any]]:
    """Run a body, and list the captured parameters that somebody may differentiate."""
    known = heard.of(operation)
    if known is not None and not known.reaches:
        outputs, pull = operation.forward(tensors)
        if known.returns:
            outputs = [output.detach() for output in outputs]
        return outputs, pull, named_parameters(operation, tensors)
    outputs, pull, foreign = _listen(operation, tensors)
    return outputs, pull, _parameters(operation, tensors, foreign)


def found(operation: Operation, tensors: list[Any]) -> tuple[list[tuple[str, Any]], Pullback | None]:
    """List the tensors that a body captures, and their names if they have one."""
    known = heard.of(operation)
    if known is not None and not known.reaches:
        return _others(named(operation), tensors), None
    _, pull, foreign = _listen(operation, tensors)
    return _others(foreign, tensors), pull


def _listen(operation: Operation, tensors: list[Any]) -> tuple[list[Any], Pullback, list[tuple[str, Any]]]:
    """Run a body and listen to it: its outputs, its pullback, and the tensors that it captures."""
    states = surroundings.states()
    with Ear(tensors) as ear:
        outputs, pull = operation.forward(tensors)
    returned = [y for y in outputs if id(y) not in ear.inside]
    names = named(operation)
    heard.remember(
        operation,
        reaches=any(all(t is not value for _, value in names) for t in ear.foreign),
        returns=bool(returned),
        random=surroundings.moved(states),
    )
    foreign = ear.foreign + [y for y in returned if _differentiable(y)]
    outputs = [y if id(y) in ear.inside else y.detach() for y in outputs]
    return outputs, pull, [*names, *(("", tensor) for tensor in foreign)]


class Ear(TorchFunctionMode):
    """Collect the floating tensors that operations take from outside."""

    def __init__(self, given: Sequence[Any]) -> None:
        super().__init__()
        self.inside = {id(tensor) for tensor in given}
        self.foreign: list[Any] = []
        self._keep: list[Any] = list(given)  # ids are those of living tensors only

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        made = list(_tensors(result))
        if any(map(_differentiable, made)) and func not in _CUT:
            for tensor in _tensors((args, kwargs)):
                if id(tensor) not in self.inside and _differentiable(tensor):
                    self._meet(tensor)
        for tensor in made:
            self.inside.add(id(tensor))
            self._keep.append(tensor)
        return result

    def _meet(self, tensor: Any) -> None:
        if all(tensor is not other for other in self.foreign):
            self.foreign.append(tensor)


def _differentiable(tensor: Any) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, _TENSOR):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def named_parameters(operation: Operation, tensors: Sequence[Any]) -> list[Any]:
    """List the parameters in reach by name; refuse any other tensor there that is differentiated."""
    memo = operation.memo
    reach = memo.get(_REACH)
    if reach is None:
        reach = memo[_REACH] = _reach_of(operation)
    cells, space, names = reach
    for cell in cells:
        try:
            value = cell.cell_contents
        except ValueError:  # a cell that is not filled yet
            continue
        if type(value) not in _OTHERS and isinstance(value, _TENSOR) and value.requires_grad:
            return _parameters(operation, tensors, named(operation))
    for name in names:
        value = space.get(name)
        if type(value) not in _OTHERS and isinstance(value, _TENSOR) and value.requires_grad:
            return _parameters(operation, tensors, named(operation))
    return []


# Most of what a body names. An instance check of torch.Tensor is slow for what is none.
_OTHERS = frozenset((ModuleType, FunctionType, BuiltinFunctionType, type, type(None), int, float, str))
_REACH = "the cells and globals in reach of the body"


def _reach_of(operation: Operation) -> tuple[Any, Any, Any]:
    """Find where the names in reach stand: looking there is what every recorded call does."""
    rule = getattr(operation, "rule", None)
    code = getattr(getattr(rule, "function", None), "__code__", None)
    if rule is None or code is None:  # a derived operation, or no function of Python's
        return (), {}, ()
    return rule.function.__closure__ or (), rule.function.__globals__, global_names(code)


def named(operation: Operation) -> list[tuple[str, Any]]:
    """List the tensors that stand in a closure cell or a global of the body."""
    return [(name, value) for name, value in operation.captured() if isinstance(value, _TENSOR)]


def _others(found: Iterable[tuple[str, Any]], tensors: Sequence[Any]) -> list[tuple[str, Any]]:
    """Leave out what is an argument too, or was listed before."""
    others: list[tuple[str, Any]] = []
    for name, tensor in found:
        if all(tensor is not t for t in tensors) and all(tensor is not t for _, t in others):
            others.append((name, tensor))
    return others


def _parameters(operation: Operation, tensors: Sequence[Any], found: list[tuple[str, Any]]) -> list[Any]:
    """Sort the parameters out of what a body captures; refuse any other tensor that is differentiated."""
    parameters: list[Any] = []
    for name, tensor in _others(found, tensors) if found else ():
        if tensor.requires_grad:
            # A compiler has stand-ins for the parameters, which are of no class of their own.
            if not isinstance(tensor, torch.nn.Parameter) and not levels.traced():
                raise refused(operation, tensor, name)
            parameters.append(tensor)
    return parameters


def refused(operation: Operation, tensor: Any, name: str) -> CapturedTensorError:
    """Say that a captured tensor is being differentiated."""
    if not name:
        name = next((known for known, value in operation.captured() if value is tensor), "")
    described = f"a tensor of shape {tuple(tensor.shape)}"
    return refusals.captured_tensor(operation, name, described, "{}.detach()", tensor)
