"""What is known of an object for as long as it lives, whatever it thinks of equality and hashing."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Known(Generic[T]):
    """Remember one value an object; a method is that of its instance, for it is bound anew at every call."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], tuple[Any, T]] = {}

    def of(self, anchor: Any, find: Callable[[], T]) -> T:
        """Give what is known of an object, or find it."""
        owner, key = anchor, (id(anchor), 0)
        if inspect.ismethod(anchor):
            owner, key = anchor.__self__, (id(anchor.__self__), id(anchor.__func__))
        held = self._found.get(key)
        if held is not None and held[0]() is owner:
            return held[1]
        found = find()
        with contextlib.suppress(TypeError):  # without weak references it is looked at again each time
            self._found[key] = (weakref.ref(owner, lambda _: self._found.pop(key, None)), found)
        return found
