"""Taking the tensors out of what a pullback keeps, and putting them back.

A function that `grad` is keeps its tensors in closure cells. PyTorch must hold them instead: it frees them
after the backward pass, sees when one is changed in place, and does not hold an output that holds the node
that holds the output. So a closure is emptied into `save_for_backward`, and built again from what comes back.
What cannot be looked into (an object of the user's) stays as it is; an output that it holds is watched.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

import torch

from pullback.hosts.operation import Operation, Pullback

_TENSOR = torch.Tensor
Rebuild = Callable[[Sequence[Any]], Any]


class First(threading.local):
    """What bodies keep for their `grad`, for a transform that runs them again: (call, tensors, all else)."""

    notes: list[tuple[Any, list[Any], list[Any]]] | None = None


first = First()


class Kept:
    """The pullback of one call without its tensors."""

    __slots__ = ("_pull", "_rebuild", "_watched", "operation", "saved")

    operation: Operation
    saved: Sequence[Any]  # the inputs, and behind them what `grad` keeps, until the node has them
    _pull: Pullback
    _rebuild: Rebuild | None
    _watched: Sequence[tuple[Any, int]]

    def take(self, pull: Pullback, given: Sequence[Any], inputs: Sequence[Any]) -> None:
        """Take the tensors out of a pullback; `inputs` stand for those that the body was given."""
        self._rebuild, self._watched = None, ()
        met, grad = list(given), pull.grad
        if grad is not None:
            body = self.operation.plan.rule.function
            self._rebuild = _Taker(met, body).function(grad)
            if first.notes is not None:
                tensors, rest, _ = parts(grad, given, body)
                first.notes.append((self.operation, tensors[len(given) :], rest))
        self._pull = pull.made_of((), grad if self._rebuild is None else None)
        self.saved = [*inputs, *met[len(given) :]]

    def watch(self, outputs: list[Any]) -> None:
        """Watch the outputs that somebody else keeps too: an object of the user's, or the program itself."""
        for i in range(len(outputs)):
            output = outputs[i]
            # Nobody else keeps it if the list, the name `output` and the argument of `getrefcount` are all.
            if sys.getrefcount(output) > 3 and not any(output is t for t in self.saved):
                self._watched = [*self._watched, (output, output._version)]
                outputs[i] = output.detach()

    def require(self, variables: Sequence[Any]) -> None:
        """Raise unless the pullback has a place for the gradients of these captured variables."""
        self.refilled(self.saved, 0).require(variables)

    def refilled(self, saved: Sequence[Any], count: int) -> Pullback:
        """Give the pullback with its tensors in place: a new one, for two threads may go through a graph."""
        if self._watched:
            self._require_unchanged()
        pull = self._pull
        return pull.made_of(saved[:count], pull.grad if self._rebuild is None else self._rebuild(saved))

    @property
    def reruns(self) -> bool:
        """Tell whether the pullback runs the body again by itself, and keeps nothing that it computed."""
        return self._pull.reruns

    def _require_unchanged(self) -> None:
        for tensor, version in self._watched:
            if tensor._version != version:
                raise RuntimeError(
                    f"{self.operation.where}: one of the variables needed for gradient computation has been "
                    "modified by an inplace operation: an output that `grad` keeps, of shape "
                    f"{tuple(tensor.shape)}, is at version {tensor._version}; expected {version} instead"
                )


# ── closures ─────────────────────────────────────────────────────────────────────────────────────────────


def parts(grad: Any, inputs: Sequence[Any], body: Any) -> tuple[list[Any], list[Any], Rebuild | None]:
    """Take a `grad` apart: its tensors, the inputs first; all else in it; and how to build it again."""
    saved = list(inputs)
    taker = _Taker(saved, body)
    rebuild = taker.function(grad)
    return saved, taker.rest, rebuild


class _Taker:
    """Take tensors out of values: each method tells how to build a value again from what was saved.

    None stands for a value that holds no tensor, or cannot be looked into.
    """

    __slots__ = ("around", "body", "inside", "rest", "saved")

    def __init__(self, saved: list[Any], body: Any) -> None:
        self.saved = saved
        self.rest: list[Any] = []  # what is no tensor, in the order of meeting
        self.body = body
        self.around = getattr(body, "__closure__", None) or ()  # cells that outlive the call
        self.inside: list[Any] = []  # the functions that are being taken apart

    def function(self, function: Any) -> Rebuild | None:
        """Empty the cells of a closure."""
        if type(function) is not FunctionType:
            if type(function) is functools.partial:
                return self.partial(function)
            self.rest.append(function)
            return None
        if any(function is known for known in self.inside):
            return None
        self.rest.append(function.__code__)
        if function.__closure__ is None:
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
            content = cell.cell_contents
        except ValueError:  # not filled: a name that is deleted, or not bound yet
            return None
        return self.value(content)

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
        if kind is FunctionType and value.__code__ in _codes(_code(self.body)):
            return self.function(value)
        if kind is functools.partial:
            return self.partial(value)
        self.rest.append(value)
        return None

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
        function = partial.func
        self.rest.append(function)
        recipe = self.container((partial.args, partial.keywords))
        if recipe is None:
            return None

        def rebuild(saved: Sequence[Any]) -> Any:
            args, kwargs = recipe(saved)
            return functools.partial(function, *args, **kwargs)

        return rebuild


class _Closure:
    """A function whose cells are filled from saved tensors."""

    __slots__ = ("made_of", "recipes")

    def __init__(self, function: FunctionType, recipes: list[Any]) -> None:
        self.recipes = recipes
        self.made_of = (
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__kwdefaults__,
        )

    def __call__(self, saved: Sequence[Any]) -> FunctionType:
        cells = []
        for recipe in self.recipes:
            if type(recipe) is int:
                recipe = CellType(saved[recipe])
            elif type(recipe) is not CellType:
                recipe = CellType(recipe(saved))
            cells.append(recipe)
        code, space, name, defaults, keywords = self.made_of
        function = FunctionType(code, space, name, defaults, tuple(cells))
        if keywords is not None:
            function.__kwdefaults__ = keywords
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
