"""Memory that a function returns and writes to again: a workspace, `out=`, a C library's own.

What a call returned is made its own before another call begins, wherever it runs: in a map, on an executor
and in the cache results are kept while the function runs again. An array that nobody else holds is its own
already, and is not copied. Two calls that ran at the same time must not return the same memory at all: what
one of them wrote, the other may have overwritten before it could be copied.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from pullback import tree
from pullback.hosts.numpy.callback import is_alone

SHARED = "two calls that ran at the same time returned the same memory"
_clock = itertools.count()
# by address: when a call that returned this memory was done, and in which thread
_ended: OrderedDict[int, tuple[int, int]] = OrderedDict()
_REMEMBERED = 1024
_lock = threading.Lock()


class SharedBufferError(Exception):
    """Two calls at the same time returned the same memory."""


def begin() -> int:
    """Say that a call begins; give its time."""
    return next(_clock)


def own(box: list[Any], begun: int) -> Any:
    """Give what a call returned, the one thing in a box, with memory of its own."""
    if type(box[0]) is np.ndarray and is_alone(box, 0):  # nearly always
        return box.pop()
    leaves, structure = tree.flatten(box.pop())
    addresses = set()
    for i in range(len(leaves)):
        if isinstance(leaves[i], np.ndarray):
            if not is_alone(leaves, i):
                if leaves[i].flags.writeable:  # arguments are not
                    addresses.add(leaves[i].__array_interface__["data"][0])
                leaves[i] = leaves[i].copy(order="K")
        elif hasattr(leaves[i], "tocoo"):  # a sparse matrix, whose arrays are inside
            leaves[i] = leaves[i].copy()
    if addresses:
        _refuse_shared(addresses, begun)
    return tree.unflatten(structure, leaves)


def _refuse_shared(addresses: set[int], begun: int) -> None:
    here = threading.get_ident()
    with _lock:
        others = [_ended[address] for address in addresses if address in _ended]
        now = next(_clock)
        for address in addresses:
            _ended[address] = now, here
        while len(_ended) > _REMEMBERED:
            _ended.popitem(last=False)
    if any(ended > begun and thread != here for ended, thread in others):
        raise SharedBufferError(SHARED)
