"""Taking the tensors out of what a pullback keeps, and putting them back.

A function that `grad` is keeps its tensors in closure cells. PyTorch must hold them instead: it frees them
after the backward pass, sees when one is changed in place, and does not hold an output that holds the node
that holds the output. So a closure is emptied into `save_for_backward`, and built again from what comes back.
What cannot be looked into (an object of the user's) stays as it is; an output that it holds is watched.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

import torch

from pullback.call import CallPullback
from pullback.hosts.base import Operation, Pullback

_TENSOR = torch.Tensor
Rebuild = Callable[[Sequence[Any]], Any]


class Kept:
    """The pullback of one call without its tensors."""

    __slots__ = ("_pull", "_rebuild", "_watched", "operation")

    def __init__(self, operation: Operation, pull: Pullback) -> None:
        self.operation = operation
        self._pull = pull
        self._rebuild: Rebuild | None = None
        self._watched: list[tuple[Any, int]] = []

    def take(self, inputs: Sequence[Any], outputs: list[Any]) -> list[Any]:
        """Take the tensors out of the pullback: those that are not inputs, to be saved behind them."""
        pull = self._pull
        saved = list(inputs)
        if type(pull) is CallPullback:
            self._rebuild = _Taker(saved, pull.call.rule.function).function(pull.grad)
        self.empty()
        for i, output in enumerate(outputs):
            # Three know it here: the list, this loop and the question. Anybody else keeps it for later.
            if sys.getrefcount(output) > 3 and not any(output is t for t in saved):
                self._watched.append((output, output._version))
                outputs[i] = output.detach()
        return saved[len(inputs) :]

    def empty(self) -> None:
        """Let go of the tensors."""
        _rebind(self._pull, ())
        if self._rebuild is not None:
            self._pull.grad = None  # type: ignore[attr-defined]

    def refilled(self, saved: Sequence[Any], count: int) -> Pullback:
        """Give the pullback with its tensors in place."""
        for tensor, version in self._watched:
            if tensor._version != version:
                raise RuntimeError(
                    f"{self.operation.where}: one of the variables needed for gradient computation has been "
                    "modified by an inplace operation: an output that `grad` keeps, of shape "
                    f"{tuple(tensor.shape)}, is at version {tensor._version}; expected version {version} instead"
                )
        pull = self._pull
        if self._rebuild is not None:
            pull.grad = self._rebuild(saved)  # type: ignore[attr-defined]
        _rebind(pull, saved[:count])
        return pull


def _rebind(pull: Any, tensors: Sequence[Any]) -> None:
    """Hand the tensors of the call to the pullback, or take them away."""
    if type(pull) is CallPullback:
        pull.tensors = pull.call.tensors = tensors
    else:
        rebind = getattr(pull, "rebind", None)
        if rebind is not None:
            rebind(tensors)


# ── closures ─────────────────────────────────────────────────────────────────────────────────────────────


class _Taker:
    """Take tensors out of values: each method tells how to build a value again from what was saved.

    None stands for a value that holds no tensor, or cannot be looked into.
    """

    __slots__ = ("around", "body", "inside", "saved")

    def __init__(self, saved: list[Any], body: Any) -> None:
        self.saved = saved
        self.body = body
        self.around = getattr(body, "__closure__", None) or ()  # cells that outlive the call
        self.inside: list[Any] = []  # the functions that are being taken apart

    def function(self, function: Any) -> Rebuild | None:
        """Empty the cells of a closure."""
        if type(function) is not FunctionType:
            return self.partial(function) if type(function) is functools.partial else None
        if function.__closure__ is None or any(function is known for known in self.inside):
            return None
        self.inside.append(function)
        recipes: list[Any] = []
        hollow = False
        for cell in function.__closure__:
            recipe = self.cell(cell)
            hollow = hollow or recipe is not None
            recipes.append(cell if recipe is None else recipe)
        self.inside.pop()
        return _Closure(function, recipes) if hollow else None

    def cell(self, cell: CellType) -> int | Rebuild | None:
        """Look into one cell."""
        if self.around and any(cell is outer for outer in self.around):
            return None
        try:
            return self.value(cell.cell_contents)
        except ValueError:  # not filled: a name that is deleted, or not bound yet
            return None

    def value(self, value: Any) -> int | Rebuild | None:
        """Look into a value: the index of a tensor, or how to build it."""
        if isinstance(value, _TENSOR):
            for i, known in enumerate(self.saved):
                if known is value:
                    return i
            self.saved.append(value)
            return len(self.saved) - 1
        kind = type(value)
        if kind is tuple or kind is list or kind is dict:
            return self.container(value)
        if kind is FunctionType:
            return self.function(value) if value.__code__ in _codes(_code(self.body)) else None
        return self.partial(value) if kind is functools.partial else None

    def container(self, container: Any) -> Rebuild | None:
        """Look into a tuple, a list or a dict."""
        parts = list(container.values()) if isinstance(container, dict) else list(container)
        recipes = [self.value(part) for part in parts]
        if all(recipe is None for recipe in recipes):
            return None
        rest = [part if recipe is None else None for part, recipe in zip(parts, recipes)]
        keys = list(container) if isinstance(container, dict) else None
        kind = type(container)

        def rebuild(saved: Sequence[Any]) -> Any:
            built = [
                part if recipe is None else saved[recipe] if type(recipe) is int else recipe(saved)  # type: ignore[operator]
                for part, recipe in zip(rest, recipes)
            ]
            return kind(built) if keys is None else dict(zip(keys, built))

        return rebuild

    def partial(self, partial: Any) -> Rebuild | None:
        """Look into the arguments of a partial function."""
        recipe = self.container((partial.args, partial.keywords))
        if recipe is None:
            return None
        function = partial.func

        def rebuild(saved: Sequence[Any]) -> Any:
            args, kwargs = recipe(saved)
            return functools.partial(function, *args, **kwargs)

        return rebuild


class _Closure:
    """A function whose cells are filled from saved tensors."""

    __slots__ = ("code", "defaults", "keywords", "name", "recipes", "space")

    def __init__(self, function: FunctionType, recipes: list[Any]) -> None:
        self.code = function.__code__
        self.space = function.__globals__
        self.name = function.__name__
        self.defaults = function.__defaults__
        self.keywords = function.__kwdefaults__
        self.recipes = recipes

    def __call__(self, saved: Sequence[Any]) -> FunctionType:
        cells = []
        for recipe in self.recipes:
            if type(recipe) is int:
                recipe = CellType(saved[recipe])
            elif type(recipe) is not CellType:
                recipe = CellType(recipe(saved))
            cells.append(recipe)
        function = FunctionType(self.code, self.space, self.name, self.defaults, tuple(cells))
        function.__kwdefaults__ = self.keywords
        return function


def _code(function: Any) -> CodeType | None:
    return getattr(function, "__code__", None)


@functools.lru_cache(maxsize=4096)
def _codes(code: CodeType | None) -> frozenset[CodeType]:
    """List the code inside a body: functions made of it are made for one call, and may be taken apart."""
    found: set[CodeType] = set()
    for constant in code.co_consts if code is not None else ():
        if isinstance(constant, CodeType):
            found |= {constant} | _codes(constant)
    return frozenset(found)
