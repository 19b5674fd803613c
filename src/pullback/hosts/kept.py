"""What a pullback kept, put into one that was made by running the body again.

A higher derivative runs the body again, so that what it keeps depends on the inputs. The values must be those
of the first run all the same: the program may have changed, meanwhile, what the body reads. So both are taken
apart (`closures.py`) and laid side by side. In the place of every tensor goes what the host makes of the pair
(the value of the first, the derivative of the second); a pair that does not agree is refused.

What is an object of the user's is compared and not rebuilt. What is the very same object in both holds what
it holds now; the tensors in its attributes are noted before the second run, and compared after it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, MethodType, ModuleType
from typing import Any

import numpy as np

from pullback.hosts.closures import Taker
from pullback.hosts.operation import Operation, Pullback

Link = Callable[[Any, Any], Any]  # of two tensors that stand in the same place
_ATOMS = (int, float, complex, str, bytes, type(None), type, ModuleType)
_MANY = 1000  # objects that are looked into; an object of a user's may hold all the world


class ChangedError(Exception):
    """The second run did not keep what the first one kept."""


class Kept:
    """The pullback of a first run, and what the objects that it shares with the next one hold."""

    def __init__(self, operation: Operation, pull: Pullback, link: Link) -> None:
        self.is_tensor = operation.host.is_tensor
        self.body = operation.plan.rule.function
        self.link = link
        self.compared: set[tuple[int, int]] = set()
        self.first = self._taken(pull.grad)[0]
        held = [_owner(value) for value in self.first.rest.values()]
        self.noted = [
            (owner, name, part)
            for owner in held
            for name, part in getattr(owner, "__dict__", {}).items()
            if not isinstance(owner, _ATOMS) and self.is_tensor(part)
        ]

    def within(self, again: Pullback) -> Pullback:
        """Give the pullback of the second run with the values of the first."""
        for owner, name, tensor in self.noted:
            self._compare(tensor, vars(owner).get(name))
        second, recipe = self._taken(again.grad)
        linked = self._linked(self.first, second)
        if recipe is None or all(new is old for new, old in zip(linked, second.saved)):
            return again
        return again.made_of(again.tensors, recipe(linked))  # type: ignore[attr-defined]

    def _taken(self, value: Any) -> tuple[Taker, Any]:
        taker = Taker(self.is_tensor, self.body, everywhere=True)
        return taker, taker.value(value)

    def _linked(self, first: Taker, second: Taker) -> list[Any]:
        """Give the tensors of the second with the values of the first."""
        codes = [
            (old, second.rest.get(path)) for path, old in first.rest.items() if isinstance(old, CodeType)
        ]
        rewritten = any(_is_rewritten(old, new) for old, new in codes)
        if not rewritten and (first.places.keys(), first.rest.keys()) != (
            second.places.keys(),
            second.rest.keys(),
        ):
            raise ChangedError
        for path in first.rest.keys() & second.rest.keys():
            self._compare(first.rest[path], second.rest[path])
        tensors = list(second.saved)
        for path in first.places.keys() & second.places.keys():
            old, index = first.saved[first.places[path]], second.places[path]
            if old is not second.saved[index]:
                tensors[index] = self.link(old, second.saved[index])
        return tensors

    def _compare(self, a: Any, b: Any) -> None:
        """Refuse two values that are not the same; objects are the same if their attributes are."""
        a, b = _owner(a), _owner(b)
        if a is b or isinstance(a, CodeType) or (id(a), id(b)) in self.compared:
            return
        if self.is_tensor(a) and self.is_tensor(b):
            self.link(a, b)
        elif type(a) is not type(b):
            raise ChangedError
        elif isinstance(a, _ATOMS):
            if not (a == b or (a != a and b != b)):
                raise ChangedError
        elif isinstance(a, (np.ndarray, np.generic)):
            if not _alike(a, b):
                raise ChangedError
        elif len(self.compared) < _MANY and not type(a).__module__.startswith("pullback."):
            self.compared.add((id(a), id(b)))
            first, second = getattr(a, "__dict__", {}), getattr(b, "__dict__", {})
            for name in first.keys() & second.keys():
                self._linked(self._taken(first[name])[0], self._taken(second[name])[0])


def _owner(value: Any) -> Any:
    """Give the object that a method belongs to."""
    return value.__self__ if type(value) is MethodType else value


def _is_rewritten(old: CodeType, new: Any) -> bool:
    """Tell whether a framework wrote a function anew; then it has more cells than the user's."""
    if old is new:
        return False
    if not isinstance(new, CodeType) or old.co_name != new.co_name or old.co_filename == new.co_filename:
        raise ChangedError  # another `grad`
    return True


def _alike(a: Any, b: Any) -> bool:
    if np.shape(a) != np.shape(b):
        return False
    if np.asarray(a).dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    return bool(np.allclose(a, b, rtol=np.sqrt(np.finfo(a.dtype).eps), atol=0, equal_nan=True))
