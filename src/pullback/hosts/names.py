"""The name by which a body reaches a tensor: `weight`, `self.gain`, `params['w']`.

Asked only while an error is being written, so it may look around: at what the body reaches by name, at its
arguments that are no tensors, and at what these hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from pullback import hosts
from pullback.hosts import Role
from pullback.rule import Rule, reach

_DEPTH = 3  # an attribute of an attribute, an entry of a list in it
_MOST = 10_000  # values that are looked at


def name_of(operation: Any, tensor: Any) -> str:
    """Find the shortest name of a tensor that is no argument of an operation or a plan; nothing for none."""
    while hasattr(operation, "inner"):
        operation = operation.inner
    plan = getattr(operation, "plan", operation)
    if not hasattr(plan, "slots"):  # its name is all that was kept of it
        return ""
    level = [*plan.rule.captured(), *_statics(plan)]
    seen: set[int] = set()
    for _ in range(_DEPTH + 1):
        for name, value in level:
            if value is tensor:
                return name
        new = [(name, value) for name, value in level if id(value) not in seen]
        seen.update(id(value) for _, value in new)
        level = [part for name, value in new for part in _parts(name, value)][:_MOST]
    return ""


def _statics(plan: Any) -> Iterator[tuple[str, Any]]:
    for slot in plan.slots:
        for leaf in slot.leaves:
            yield slot.name, leaf


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """List what a value holds, each part as it is written in code."""
    if isinstance(value, MethodType):
        yield from _parts(name.rpartition(".")[0] or name, value.__self__)
    elif isinstance(value, FunctionType):
        rule = getattr(value, "rule", None)
        yield from reach(rule.function if isinstance(rule, Rule) else value)
    elif isinstance(value, (ModuleType, type)) or hosts.role(type(value)) is not Role.STATIC:
        return
    elif isinstance(value, (list, tuple)):
        yield from ((f"{name}[{i}]", part) for i, part in enumerate(value))
    elif isinstance(value, dict):
        yield from ((f"{name}[{key!r}]", part) for key, part in value.items())
    else:
        for served in ("named_parameters", "named_buffers"):  # what a module serves as attributes
            if callable(listed := getattr(value, served, None)):
                yield from ((f"{name}.{inner}", part) for inner, part in listed())
        yield from ((f"{name}.{a}", part) for a, part in list(getattr(value, "__dict__", {}).items()))
        slots = (a for a in getattr(type(value), "__slots__", ()) if not a.startswith("__"))
        yield from ((f"{name}.{a}", getattr(value, a, None)) for a in slots)
