"""Whether a body can reach a tensor that it is not handed: most cannot, and need no listening.

Such a body is called with tensors alone, and names nothing but the code of libraries and constants. What the
names mean is looked at in every call: a global can be bound anew.
"""

from __future__ import annotations

import dis
import sys
from operator import is_
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.rule import global_names

# the modules of the standard library through which everything can be reached are none of these
_EVERYTHING = {"builtins", "gc", "importlib", "inspect", "sys"}
_LIBRARIES = (frozenset(sys.stdlib_module_names) - _EVERYTHING) | {"tensorflow", "keras", "numpy", "pullback"}
_CONSTANTS = (int, float, complex, str, bytes, type(None), tf.DType, np.ndarray, np.generic, np.ufunc)
_NO_NAMES = {"__import__", "eval", "exec", "globals", "vars"}  # they find what the code does not name
_CLOSED = "what the names in reach of the body meant, when all of it was the code of libraries"


def is_closed(operation: Any) -> bool:
    """Tell whether a body reaches its tensors, the code of libraries and constants, and nothing else."""
    if not getattr(operation, "flat", False):  # an object among the arguments may hold anything
        return False
    values = [value for _, value in operation.captured()]
    known = operation.memo.get(_CLOSED)
    if known is not None and len(known) == len(values) and all(map(is_, known, values)):
        return True
    closed = _names_all(operation.rule.body) and all(map(_is_closed, values))
    if closed:
        operation.memo[_CLOSED] = values
    return closed


def _names_all(body: Any) -> bool:
    """Tell whether what a body reaches is what its names mean: an object or a wrapper holds more."""
    if type(body) is not FunctionType or hasattr(body, "__wrapped__") or body.__kwdefaults__:
        return False
    return _NO_NAMES.isdisjoint(global_names(body.__code__)) and not _imports(body.__code__)


def _imports(code: CodeType) -> bool:
    inside = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return any(i.opname == "IMPORT_NAME" for i in dis.get_instructions(code)) or any(map(_imports, inside))


def _is_closed(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return _top(value.__name__) in _LIBRARIES
    if isinstance(value, FunctionType | BuiltinFunctionType | type):
        return _top(value.__module__) in _LIBRARIES
    return isinstance(value, _CONSTANTS)


def _top(name: str | None) -> str:
    return (name or "").partition(".")[0]
