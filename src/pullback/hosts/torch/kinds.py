"""Kinds of operations and modules, as users name them in an override.

`torch.relu`, `torch.nn.functional.relu`, `Tensor.relu` and `"relu"` are one kind of operation: functions of
one name. So are an operator and its function: `+` and `torch.add`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import torch

from pullback.errors import OverrideError
from pullback.hosts import refusals
from pullback.hosts.overrides import sorted_out
from pullback.rule import shown_signature

_OPERATORS = {"truediv": "div", "rtruediv": "div", "radd": "add", "rmul": "mul", "rmatmul": "matmul"}
_ALIASES = {"divide": "div", "multiply": "mul", "subtract": "sub", "negative": "neg", "absolute": "abs"}


def name(kind: Any) -> str:
    """Name a kind as a report does."""
    return kind if isinstance(kind, str) else str(getattr(kind, "__name__", kind))


def operation(function: Any) -> str:
    """Name the operation that a function of PyTorch is, whichever of its spellings was called."""
    called = str(getattr(function, "__name__", function))
    if called.startswith("__") and called.endswith("__"):
        called = called.strip("_")
        if called[0] == "i" and called[1:] in ("add", "sub", "mul", "truediv", "pow", "div"):
            called = _OPERATORS.get(called[1:], called[1:]) + "_"
        called = _OPERATORS.get(called, called)
    return _ALIASES.get(called, called)


@functools.cache
def _functions() -> frozenset[str]:
    """Name every function of PyTorch that tells of its calls."""
    found = torch.overrides.get_overridable_functions().values()
    return frozenset(operation(function) for functions in found for function in functions)


def sort(kinds: Iterable[Any]) -> tuple[dict[str, Any], list[Any]]:
    """Sort kinds into operations and modules."""
    return sorted_out(kinds, _is_module, _operation)


def word(kind: Any) -> Any:
    """Name a kind by something that can be stored: a module by its class, an operation by its name."""
    return kind if _is_module(kind) else _operation(kind)


def _is_module(kind: Any) -> bool:
    if isinstance(kind, str):  # "ReLU" is a module, "relu" an operation, "MyBlock" somebody's module
        return isinstance(getattr(torch.nn, kind, None), type) or kind not in _functions()
    return isinstance(kind, type) and issubclass(kind, torch.nn.Module)


def _operation(kind: Any) -> str:
    found = operation(kind)
    module = str(getattr(kind, "__module__", None) or getattr(kind, "__qualname__", ""))
    ours = isinstance(kind, str) or module.startswith(
        ("torch", "keras.", "_TensorBase", "Tensor", "TensorBase", "_VariableFunctions")
    )
    if not callable(kind) and not isinstance(kind, str):
        raise _no_operation(kind, "it is nothing that runs")
    if isinstance(kind, type) or not ours or found not in _functions():
        raise _no_operation(kind, "PyTorch does not tell of its calls")
    if found.endswith("_"):
        raise in_place(found)
    return found


def _no_operation(kind: Any, why: str) -> OverrideError:
    expected = "a function of PyTorch, a module's class or name, or the name of a function"
    return refusals.no_operation(name(kind), why, expected, 'pb.override(model, {"relu": gradient})')


def in_place(found: str) -> OverrideError:
    """Say that an operation that changes its input cannot have another gradient."""
    return OverrideError.about(
        "override",
        found=f"{found} changes its input in place",
        expected="an operation that gives a new tensor",
        why="the gradient of what it overwrites would be lost",
        fix=f"use {found.removesuffix('_')}, or inplace=False",
    )


def input_names(function: Any, count: int) -> list[str]:
    """Name the tensors that a function takes, as its signature does where it has one."""
    known = shown_signature(function)
    names = [n for n in known.parameters if n.isidentifier()] if known else ["input", "other"]
    return names[:count] if len(names) >= count and count <= 2 else [f"input_{i}" for i in range(count)]
