"""Whether a body can reach a tensor that it is not handed: most cannot, and need no listening.

Such a body is called with tensors alone, and names nothing but the code of libraries and constants. What the
names mean is looked at in every call: a global can be bound anew.
"""

from __future__ import annotations

import sys
from operator import is_
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.hosts.base import Operation

_LIBRARIES = frozenset(sys.stdlib_module_names) | {"tensorflow", "keras", "numpy", "pullback"}
_CONSTANTS = (int, float, complex, str, bytes, type(None), tf.DType, np.ndarray, np.generic, np.ufunc)
_CLOSED = "what the names in reach of the body meant, when all of it was the code of libraries"


def is_closed(operation: Operation) -> bool:
    """Tell whether a body reaches its tensors, the code of libraries and constants, and nothing else."""
    if not getattr(operation, "flat", False):  # an object among the arguments may hold anything
        return False
    values = [value for _, value in operation.captured()]
    known = operation.memo.get(_CLOSED)
    if known is not None and len(known) == len(values) and all(map(is_, known, values)):
        return True
    closed = all(map(_is_closed, values))
    if closed:
        operation.memo[_CLOSED] = values
    return closed


def _is_closed(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return _top(value.__name__) in _LIBRARIES
    if isinstance(value, FunctionType | BuiltinFunctionType | type):
        return _top(value.__module__) in _LIBRARIES
    return isinstance(value, _CONSTANTS)


def _top(name: str | None) -> str:
    return (name or "").partition(".")[0]
