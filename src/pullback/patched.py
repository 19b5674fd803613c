"""Other attributes for the time of a block, where a framework offers nothing to be told by."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_ABSENT = object()


@contextlib.contextmanager
def patched(owner: Any, **values: Any) -> Iterator[None]:
    """Give a module or class other attributes inside a block, and put back what stood in it.

    One that it only inherits is taken away again.
    """
    before = {name: vars(owner).get(name, _ABSENT) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


class Shared:
    """Give an owner other attributes as long as any block is open, on any thread."""

    def __init__(self, owner: Any, **values: Any) -> None:
        self._owner = owner
        self._values = values
        self._open = 0
        self._lock = threading.Lock()
        self._others = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._open:
                self._others.enter_context(patched(self._owner, **self._values))
            self._open += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._open -= 1
            if not self._open:
                self._others.close()
