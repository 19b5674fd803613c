"""Other attributes for the time of a block, where a framework offers nothing to be told by."""

from __future__ import annotations

import contextlib
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
