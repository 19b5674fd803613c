"""Finding tensors that reach a body through a closure while somebody differentiates them.

A rule has no cotangent for such a tensor, so its gradient would silently be None. A parameter is what a
variable is elsewhere: `grad` may answer for it by `variables=`. The body runs on its inputs cut off, while
PyTorch records: so an output, or a tensor that `grad` keeps, that requires a gradient tells of a captured one
by itself, on every call and at no cost. Which one it is, is found by listening to the operations of the body:
on its first call, and on every one if there was anything.

That is eager mode, in this file. Under a transform, what was found is made an argument
(`closure_convert.py`). Dynamo runs no operation to listen to: there the names in the code are followed
(`guards.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pullback.errors import CapturedTensorError
from pullback.hosts import refusals
from pullback.hosts.operation import Around, Derived, Operation, Pullback
from pullback.hosts.torch import effects, private, state, surroundings
from pullback.hosts.torch.arrays import differentiable
from pullback.hosts.torch.nodes import behind
from pullback.hosts.torch.residuals import Kept
from pullback.rule import names_in, reach

_TENSOR = torch.Tensor
_set_grad_enabled = private.set_grad_enabled
# what is computed from a tensor's shape alone, or cuts it off
_CUT = {
    torch.Tensor.detach,
    torch.Tensor.data.__get__,  # type: ignore[attr-defined]
    torch.Tensor.grad.__get__,  # type: ignore[union-attr]
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


class MissedError(Exception):
    """A tensor of a transform was captured by a body that was not known to capture any."""


def run(
    operation: Operation, tensors: list[Any], kept: Kept, ran: Any, transformed: bool
) -> tuple[list[Any], list[Any]]:
    """Run a body, and take its pullback apart: its outputs, and the captured parameters to answer for.

    `ran` holds what a body that was run already has returned: one that can capture nothing.
    """
    if isinstance(operation, Derived) and not isinstance(operation, Around):  # no body of the user's
        with torch.no_grad():
            outputs, pull = operation.forward(tensors)
        kept.take(pull, tensors, tensors)
        return outputs, []
    if ran is not None:
        outputs, pull = operation.ran(tensors, ran[0])  # type: ignore[attr-defined]
        kept.take(pull, tensors, tensors)
        return outputs, []
    known = effects.of(operation)
    if known is None or known.reaches:
        return _answered(operation, tensors, kept)
    given = cut_off(tensors)
    outputs, pull = below(operation, given) if transformed else operation.forward(given)
    named = _named_by(pull)
    kept.take(pull, given, tensors)
    if not (told(outputs) or told(kept.saved[len(tensors) :]) or told(named)):
        return put_back(outputs, given, tensors), []
    if isinstance(operation, Around):
        raise MissedError
    kept.saved = ()
    del outputs, pull  # what was recorded is let go before the body runs again
    with state.put_back():
        return _answered(operation, tensors, kept)


def below(operation: Operation, tensors: list[Any]) -> tuple[list[Any], Pullback]:
    """Run a body below every transform: a tensor that belongs to one, or is differentiated, is captured."""
    if isinstance(operation, Derived):
        return operation.forward(tensors)
    before = private.handed.count
    with Ear(tensors, recording=True) as ear:
        outputs, pull = operation.forward(tensors)
    # A rule inside the body wraps tensors of its own where nobody hears it.
    if ear.outside and private.handed.count == before:
        raise MissedError
    return outputs, pull


def captured_by(operation: Operation, tensors: list[Any]) -> tuple[list[tuple[str, Any]], Pullback | None]:
    """List the tensors that a body captures and a transform may follow, and their names if they have one."""
    known = effects.of(operation)
    named = {id(value): name for name, value in operation.captured() if _is_followed(value)}
    if known is not None and not known.reaches and not named:
        return [], None
    with state.put_back(), surroundings.undrawn():  # the run that counts is still to come
        _, pull, ear = _listen(operation, tensors)
    return [(named.get(id(t), ""), t) for t in ear.outside], pull


def _is_followed(value: Any) -> bool:
    return isinstance(value, _TENSOR) and (value.requires_grad or private.is_wrapped(value))


def cut_off(tensors: Sequence[Any]) -> list[Any]:
    """Give tensors that nobody differentiates in the places of those that somebody does."""
    given = [tensor.detach() if tensor.requires_grad else tensor for tensor in tensors]
    for i, tensor in enumerate(tensors[1:], 1):  # one that stands twice is one for the body too
        for j in range(i):
            if tensors[j] is tensor:
                given[i] = given[j]
    return given


def put_back(outputs: Sequence[Any], given: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    """Give the inputs themselves in the places of outputs that are inputs."""
    made = list(outputs)
    for i, output in enumerate(made):
        for x, tensor in zip(given, tensors):
            if output is x:
                made[i] = tensor
    return made


def _named_by(pull: Pullback) -> list[Any]:
    """List the tensors that a `grad` can name."""
    return [value for _, value in reach(pull.grad) if isinstance(value, _TENSOR)]


def told(tensors: Iterable[Any]) -> bool:
    """Tell whether any tensor was computed from one that somebody differentiates."""
    return any(tensor.requires_grad for tensor in tensors)


# ── listening ────────────────────────────────────────────────────────────────────────────────────────────


def _answered(operation: Operation, tensors: list[Any], kept: Kept) -> tuple[list[Any], list[Any]]:
    """Run a body and listen to it; refuse what it captures, but for parameters that `grad` answers for."""
    # A body that asks whether a tensor requires a gradient must be told the truth.
    code = operation.identity
    asks = isinstance(code, CodeType) and "requires_grad" in names_in(code)
    given = tensors if asks else cut_off(tensors)
    with torch.set_grad_enabled(not asks):
        outputs, pull, ear = _listen(operation, given)
    named = _named_by(pull)
    kept.take(pull, given, tensors)
    made = [*outputs, *kept.saved[len(tensors) :]]
    ear.meet(named)
    ear.trace(made)
    effects.remember(operation, reaches=bool(asks or ear.outside or told(made)))
    parameters: list[Any] = []
    for tensor in ear.outside:
        if tensor.requires_grad and all(tensor is not t for t in (*tensors, *parameters)):
            # A compiler has stand-ins for the parameters, which are of no class of their own.
            if not isinstance(tensor, torch.nn.Parameter) and not private.traced():
                raise refused(operation, tensor, "")
            parameters.append(tensor)
    if parameters:
        kept.require(parameters)
    return put_back(outputs, given, tensors), parameters


def _listen(operation: Operation, given: list[Any]) -> tuple[list[Any], Pullback, Ear]:
    """Run a body and listen to it."""
    states = surroundings.states()
    with private.uncompiled(), Ear(given) as ear:
        outputs, pull = operation.forward(given)
    effects.remember(operation, reaches=bool(ear.outside), random=surroundings.moved(states))
    return outputs, pull, ear


class Ear(TorchFunctionMode):
    """Collect the tensors that operations take from outside, if somebody may differentiate them.

    Once there is one, nothing is recorded any more, if not told otherwise: a body that captures a parameter
    keeps no more than another.
    """

    def __init__(self, given: Sequence[Any], *, recording: bool = False) -> None:
        super().__init__()
        self._records = recording
        self.outside: list[Any] = []
        self._given = given
        self._inside: dict[int, weakref.ref[Any]] = {}  # no tensor is kept alive for being known
        for tensor in given:
            self._know(tensor)

    def __enter__(self) -> Ear:
        self._recording = torch.is_grad_enabled()
        self._wrapping = private.wrapping(self._wrapped)
        self._wrapping.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._wrapping.__exit__(None, None, None)
        _set_grad_enabled(self._recording)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        met = [] if func in _CUT else [t for t in _tensors((args, kwargs)) if self._is_outside(t)]
        recording = torch.is_grad_enabled() and not self._records
        if met and recording:
            _set_grad_enabled(False)
        result = func(*args, **(kwargs or {}))
        made = list(_tensors(result))
        if any(map(differentiable, made)):
            self.meet(met)
        elif met and recording:  # it was asked for its shape, or the like
            _set_grad_enabled(True)
        for tensor in made:
            self._know(tensor)
        return result

    def _wrapped(self, tensor: Any, made: Any) -> None:
        """Hear that a transform of the body's own wraps a tensor, or takes its wrapping off."""
        if isinstance(tensor, _TENSOR):
            self.meet([tensor])
            self._know(made)

    def trace(self, tensors: Sequence[Any]) -> None:
        """Find what tensors were computed from in operations that nobody hears, as compiled ones."""
        self.meet([tensor for tensor in tensors if tensor.is_leaf])
        known = [*self._given, *self.outside]
        nodes = behind([y for y in tensors if all(y is not x for x in known)])
        self.meet([node.variable for node in nodes if hasattr(node, "variable")])

    def _know(self, tensor: Any) -> None:
        self._inside[id(tensor)] = weakref.ref(tensor)

    def meet(self, tensors: Sequence[Any]) -> None:
        """Remember those from outside."""
        for tensor in tensors:
            if self._is_outside(tensor) and all(tensor is not other for other in self.outside):
                self.outside.append(tensor)

    def _is_outside(self, tensor: Any) -> bool:
        if not _is_followed(tensor) or not differentiable(tensor):
            return False
        known = self._inside.get(id(tensor))
        return known is None or known() is not tensor


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, _TENSOR):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def refused(operation: Operation, tensor: Any, name: str) -> CapturedTensorError:
    """Say that a captured tensor is being differentiated."""
    described = f"a tensor of shape {tuple(tensor.shape)}"
    return refusals.captured_tensor(operation, name, described, "{}.detach()", tensor)
