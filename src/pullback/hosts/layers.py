"""Keras layers as functions of their weights, on the hosts where a weight is not differentiated in its place.

The values of a call stand in a `StatelessScope`: nothing is written into the layer, and what it would update
is forgotten after the call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any


def is_layer(function: Any) -> bool:
    """Tell whether a callable is a layer or a model of Keras."""
    keras = sys.modules.get("keras")
    return hasattr(keras, "StatelessScope") and isinstance(function, keras.layers.Layer)  # type: ignore[union-attr]


def run_on(framework: str) -> bool:
    """Tell whether layers of Keras, if there are any, run on a framework."""
    keras = sys.modules.get("keras")
    return hasattr(keras, "StatelessScope") and keras.backend.backend() == framework  # type: ignore[union-attr]


def variables_of(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """List the trainable variables of a layer, which it builds in its first call."""
    if not is_layer(function):
        return []
    if not function.built:
        function(*args, **kwargs)
    return list(function.trainable_variables)


def with_values(function: Any, variables: Sequence[Any], values: Sequence[Any]) -> Callable[..., Any]:
    """Give the layer with other values in the places of its variables."""

    def call(*args: Any, **kwargs: Any) -> Any:
        scope = sys.modules["keras"].StatelessScope(state_mapping=list(zip(variables, values)))
        with scope:
            return function(*args, **kwargs)

    return call


def numbered(names: Sequence[str]) -> list[str]:
    """Make names unique: the second `kernel` is `kernel (2)`."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return made
