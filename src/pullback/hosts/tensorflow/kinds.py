"""Kinds of operations and layers, as users name them in an override."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from pullback.errors import OverrideError
from pullback.hosts import refusals
from pullback.hosts.keras import names_layer
from pullback.hosts.overrides import sorted_out

_RAW = {name.lower(): name for name in dir(tf.raw_ops) if name[0].isupper()}


def name(kind: Any) -> str:
    """Name a kind as a report does."""
    return kind if isinstance(kind, str) else str(getattr(kind, "__name__", kind)).removesuffix("_v2")


def sort(kinds: Iterable[Any]) -> tuple[dict[str, Any], list[Any]]:
    """Sort kinds into types of operations and layers."""
    return sorted_out(kinds, _is_layer, _operation)


def word(kind: Any) -> Any:
    """Name a kind by something that can be stored: a layer by its class, an operation by its name."""
    if _is_layer(kind):
        return kind
    operation = _operation(kind)
    called = name(kind)
    return called if _RAW.get(called.replace("_", "").lower()) == operation else operation


def _is_layer(kind: Any) -> bool:
    # "Conv2D" is a layer, "Relu" an operation, "MyBlock" somebody's layer
    return names_layer(kind) or (isinstance(kind, str) and kind.replace("_", "").lower() not in _RAW)


def _operation(kind: Any) -> str:
    """Find the operation that a function of TensorFlow runs."""
    if isinstance(kind, str):
        return _RAW[kind.replace("_", "").lower()]
    if not callable(kind) or isinstance(kind, type):
        raise _no_operation(kind, "it is nothing that runs")
    called = name(kind).replace("_", "").lower()
    if called in _RAW and (getattr(kind, "__module__", None) or "").startswith(("tensorflow.", "keras.")):
        return _RAW[called]
    made = _traced(kind)
    if len(made) != 1:
        raise _no_operation(kind, f"it is made of {', '.join(made)}" if made else "it could not be traced")
    return made[0]


def _traced(function: Any) -> list[str]:
    """List the types of the operations that a function of one or two tensors runs."""
    for count in (1, 2):
        specs = [tf.TensorSpec([2, 2])] * count
        try:
            graph = tf.function(function, autograph=False).get_concrete_function(*specs).graph
        except (TypeError, ValueError, tf.errors.OpError):
            continue
        types = [op.type for op in graph.get_operations()]
        return [
            kind for kind in dict.fromkeys(types) if kind not in ("Placeholder", "Const", "Identity", "NoOp")
        ]
    return []


def _no_operation(kind: Any, why: str) -> OverrideError:
    expected = "a function that runs one operation, a layer's class or name, or the name of an operation"
    return refusals.no_operation(name(kind), why, expected, 'pb.override(model, {"Relu": gradient})')


def input_names(op_type: str, count: int) -> list[str]:
    """Name the inputs of an operation as its definition does."""
    definition = _definition(op_type)
    if definition is not None and len(definition) == count:
        return definition
    return [f"input_{i}" for i in range(count)]


def options(op_type: str, count: int) -> dict[str, Any] | None:
    """Give the options of an operation: none, or None where it has some, which are not told."""
    definition = _definition(op_type)
    return {} if definition is not None and len(definition) == count else None


def _definition(op_type: str) -> list[str] | None:
    raw = getattr(tf.raw_ops, op_type, None)
    if raw is None:
        return None
    return [parameter for parameter in inspect.signature(raw).parameters if parameter != "name"]
