"""Results that are nobody else's.

A framework may take the memory of a result as its own. An array that the function keeps for its next call,
or that is a part of an argument, would then change under the framework's hands, so it is copied; any other
goes on as it is. Who else holds an array is read from its reference count.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pullback import tree


def _references(box: list[Any]) -> int:
    return sys.getrefcount(box[0])


_ALONE = _references([np.empty(1)])  # of an array that a container holds, and nothing else


def owned(box: list[Any]) -> Any:
    """Take a result out of the list that alone holds it; copy the arrays in it that others hold too."""
    if isinstance(box[0], np.ndarray):
        return box.pop() if _alone(box) else box.pop().copy()
    if not isinstance(box[0], (tuple, list, dict)):
        return box.pop()
    container = box.pop()
    parts = tree.parts_of(container)
    if not any(isinstance(part, (np.ndarray, tuple, list, dict)) for part in parts):
        return container
    template = tree.rebuild(container, [None] * len(parts))
    del container
    owned_parts = []
    while parts:
        owned_parts.append(owned([parts.pop(0)]))
    return tree.rebuild(template, owned_parts)


def _alone(box: list[Any]) -> bool:
    if sys.getrefcount(box[0]) > _ALONE:
        return False
    base = box[0].base
    if base is None:
        return bool(box[0].flags.owndata)
    # a view: of an array that nothing else holds (the name `base` is one reference more)
    return isinstance(base, np.ndarray) and base.base is None and sys.getrefcount(base) <= _ALONE + 1
