"""Taking a closure apart: the tensors in it, all else, and how to build it again of other tensors.

What a `grad` keeps stands in the cells of a closure, in its defaults, and in the functions, tuples, lists,
dicts and partial functions that stand there. Every part is known by its path, a chain of names and indices,
so that what two runs of a body keep can be laid side by side. A part without tensors stays as it is, and so
does what cannot be looked into: an object of the user's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from pullback import tree

Build = Callable[[Sequence[Any]], Any]  # of tensors
Recipe = int | Build | None  # the index of a tensor, how to build a value, or None for one that stays
Path = tuple[Any, ...]

_MANY = 1000  # parts that are looked into: a closure may reach all the world


class Taker:
    """Take tensors out of values: each method gives the recipe of one."""

    __slots__ = ("around", "body", "everywhere", "inside", "is_tensor", "places", "rest", "saved")

    def __init__(
        self,
        is_tensor: Callable[[Any], bool],
        body: Any,
        given: Sequence[Any] = (),
        *,
        everywhere: bool = False,
    ) -> None:
        self.is_tensor = is_tensor
        self.body = body
        self.everywhere = everywhere  # or only in functions that the body makes: they are made for one call
        self.saved = list(given)  # each tensor once, behind those that are known
        self.places: dict[Path, int] = {}  # where each stands, and its index
        self.rest: dict[Path, Any] = {}  # what is no tensor
        self.around = getattr(body, "__closure__", None) or ()  # cells that outlive the call
        self.inside: list[Any] = []  # what is being taken apart

    def grad(self, grad: Any) -> Recipe:
        """Take the user's own apart, whoever made it."""
        return self._within(self._function, grad, ()) if type(grad) is FunctionType else self.value(grad)

    def value(self, value: Any, path: Path = ()) -> Recipe:
        """Look at a value."""
        if self.is_tensor(value):
            return self._tensor(value, path)
        kind = type(value)
        if kind is FunctionType and (
            self.everywhere or value.__code__ in _codes_in(getattr(self.body, "__code__", None))
        ):
            return self._within(self._function, value, path)
        if isinstance(value, (tuple, list, dict)) and tree.is_container(value):
            return self._within(self._container, value, path)
        if kind is functools.partial:
            return self._within(self._partial, value, path)
        self.rest[path] = value
        return None

    def _function(self, function: Any, path: Path) -> Recipe:
        """Empty the cells of a closure, and its defaults."""
        code = function.__code__
        self.rest[path] = code
        cells: list[Any] = []
        hollow = False
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            recipe = self._cell(cell, (path, name))
            hollow = hollow or recipe is not None
            cells.append(cell if recipe is None else recipe)
        given = function.__defaults__, function.__kwdefaults__
        defaults = None if given == (None, None) else self._container(given, (path, "defaults"))
        return None if not hollow and defaults is None else _Closure(function, cells, defaults)

    def _within(self, take: Callable[[Any, Path], Recipe], value: Any, path: Path) -> Recipe:
        """Go into a value, if that is no way back to where we are."""
        for outer in self.inside:
            if outer is value:
                return None
        if len(self.rest) > _MANY:
            return None
        self.inside.append(value)
        recipe = take(value, path)
        self.inside.pop()
        return recipe

    def _tensor(self, tensor: Any, path: Path) -> int:
        for index, known in enumerate(self.saved):
            if known is tensor:
                self.places[path] = index
                return index
        self.places[path] = len(self.saved)
        self.saved.append(tensor)
        return self.places[path]

    def _cell(self, cell: CellType, path: Path) -> Recipe:
        if self.around and any(cell is outer for outer in self.around):
            return None
        try:
            content = cell.cell_contents
        except ValueError:  # not filled: a name that is deleted, or not bound yet
            return None
        return self.value(content, path)

    def _container(self, container: Any, path: Path) -> Recipe:
        parts = tree.parts_of(container)
        keys = tree.keys_of(container) if isinstance(container, dict) else range(len(parts))
        recipes = [self.value(part, (path, key)) for key, part in zip(keys, parts)]
        if all(recipe is None for recipe in recipes):
            return None
        kept = [part if recipe is None else None for part, recipe in zip(parts, recipes)]
        hollow = tree.rebuild(container, kept)

        def build(saved: Sequence[Any]) -> Any:
            built = [part if recipe is None else _built(recipe, saved) for part, recipe in zip(kept, recipes)]
            return tree.rebuild(hollow, built)

        return build

    def _partial(self, partial: Any, path: Path) -> Recipe:
        recipe = self._container((partial.func, partial.args, partial.keywords), path)
        if recipe is None:
            return None

        def build(saved: Sequence[Any]) -> Any:
            function, args, kwargs = _built(recipe, saved)
            return functools.partial(function, *args, **kwargs)

        return build


class _Closure:
    """A function whose cells and defaults are filled from saved tensors."""

    __slots__ = ("cells", "defaults", "given", "made_of", "named")

    def __init__(self, function: FunctionType, cells: list[Any], defaults: Recipe) -> None:
        self.cells = cells
        self.defaults = defaults
        self.given: Any = (function.__defaults__, function.__kwdefaults__) if defaults is None else None
        self.made_of = function.__code__, function.__globals__, function.__name__
        self.named = function.__dict__

    def __call__(self, saved: Sequence[Any]) -> FunctionType:
        cells = []
        for recipe in self.cells:
            cells.append(recipe if type(recipe) is CellType else CellType(_built(recipe, saved)))
        defaults, keywords = self.given if self.defaults is None else _built(self.defaults, saved)
        function = FunctionType(*self.made_of, defaults, tuple(cells))
        if keywords is not None:
            function.__kwdefaults__ = keywords
        if self.named:
            function.__dict__.update(self.named)
        return function


def _built(recipe: Any, saved: Sequence[Any]) -> Any:
    return saved[recipe] if type(recipe) is int else recipe(saved)


@functools.lru_cache(maxsize=4096)
def _codes_in(code: CodeType | None) -> frozenset[CodeType]:
    """List the code inside a body."""
    found: set[CodeType] = set()
    for constant in code.co_consts if code is not None else ():
        if isinstance(constant, CodeType):
            found |= {constant} | _codes_in(constant)
    return frozenset(found)
