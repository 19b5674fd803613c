"""The records of PyTorch's rules: where each stands, how it is called, and what is checked of it."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any

from pullback.record.place import Source, name_of, place_of
from pullback.record.sample import Recorded

DEFINITIONS = "torch._library.custom_ops"
KERAS = "keras.src.backend.torch.core"


def found(value: Any) -> Recorded | None:
    """Make the record of a rule that stands in a module; None for anything else."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "autograd"):
        return None
    if inspect.isclass(value):
        return function_rule(value) if _is_rule(value) else None
    if type(value).__name__ == "CustomOpDef" and type(value).__module__ == DEFINITIONS:
        return operator_rule(value, value) if value._backward_fn is not None else None
    return None


def named(value: Any) -> Recorded | None:
    """Make the record of what a user named: a Function, its `apply`, or an operator."""
    owner = getattr(value, "__self__", None)
    if inspect.isclass(owner) and getattr(value, "__name__", "") == "apply":
        return found(owner)
    return found(value)


def _is_rule(kind: Any) -> bool:
    """Tell whether a class is a Function with a forward of its own."""
    base = sys.modules["torch"].autograd.Function
    return issubclass(kind, base) and kind.forward is not base.forward


def function_rule(kind: Any) -> Recorded:
    """Make the record of a Function: what is checked is its `apply`."""
    path, line = _class_place(kind)
    return Recorded(
        kind.apply, kind.__name__, "torch.autograd.Function", kind.__module__, path, line, "torch",
        user=kind, signature=_signature(kind),
    )  # fmt: skip


def keras_rule(user: Any) -> Recorded:
    """Make the record of a function under `keras.ops.custom_gradient`."""
    path, line = place_of(user)
    function = sys.modules[KERAS].custom_gradient(user)
    module = str(getattr(user, "__module__", ""))
    return Recorded(
        function, name_of(user), "keras.ops.custom_gradient", module, path, line, "torch", user=user
    )


@functools.lru_cache(maxsize=1024)
def _class_place(kind: Any) -> tuple[str, int]:
    """Find the line of a class, or that of its forward."""
    path, line = place_of(kind.forward)
    first = kind.__dict__.get("__firstlineno__")  # Python 3.13
    if first is None:
        try:
            first = inspect.getsourcelines(kind)[1]
            path = os.path.abspath(inspect.getsourcefile(kind) or path)
        except (OSError, TypeError):
            first = line
    return path, int(first)


def _signature(kind: Any) -> inspect.Signature | None:
    """Give the arguments of `apply`: those of forward, without the context."""
    try:
        signature = inspect.signature(kind.forward)
    except (TypeError, ValueError):
        return None
    base = sys.modules["torch"].autograd.Function
    if kind.setup_context is not base.setup_context:
        return signature
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def operator_rule(operator: Any, info: Any) -> Recorded:
    """Make the record of an operator of `torch.library`."""
    user = getattr(info, "_init_fn", None) or info._backward_fn
    path, line = place_of(user)
    overload = getattr(operator, "_opoverload", operator)
    name = str(overload._schema.name)
    module = str(getattr(user, "__module__", ""))
    signature = inspect.signature(user) if user is not info._backward_fn else None
    return Recorded(
        operator, name, "torch.library", module, path, line, "torch", user=user, signature=signature
    )


def source_of(kind: Any) -> Source:
    """Name a Function."""
    # Two classes may share a forward and differ in their backward.
    codes = tuple(getattr(getattr(kind, name), "__code__", None) for name in ("forward", "backward"))
    return Source((kind.__qualname__, *codes), kind.__module__)
