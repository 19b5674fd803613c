"""What is known of Keras, which runs on the hosts: its layers, weights and symbols.

Keras is looked at only if the program has imported it. A layer is a function of its weights too. On hosts
where a weight is not differentiated in its place, the values of a call stand in a `StatelessScope`: nothing
is written into the layer, and what it would update is forgotten after the call.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def _keras() -> Any:
    """Give Keras 3, if the program has imported it."""
    found = sys.modules.get("keras")
    return found if hasattr(found, "StatelessScope") else None


def is_layer(value: Any) -> bool:
    """Tell whether a value is a layer or a model."""
    keras = _keras()
    return keras is not None and isinstance(value, keras.layers.Layer)


def names_layer(kind: Any) -> bool:
    """Tell whether a kind is the class of a layer, or the name of one that Keras has."""
    keras = _keras()
    if keras is None:
        return False
    if isinstance(kind, str):
        return hasattr(keras.layers, kind)
    return isinstance(kind, type) and issubclass(kind, keras.layers.Layer)


def is_weight(kind: type) -> bool:
    """Tell whether values of a type are weights of layers; which framework holds them, the type shows."""
    of_keras = any(base.__module__.startswith("keras.") for base in kind.__mro__)
    return of_keras and hasattr(kind, "assign") and hasattr(kind, "value")


def is_symbol(kind: type) -> bool:
    """Tell whether values of a type are places in a model that is being built."""
    return kind.__name__ == "KerasTensor" and kind.__module__.startswith("keras.")


def run_on(framework: str) -> bool:
    """Tell whether layers, if there are any, run on a framework."""
    keras = _keras()
    return keras is not None and keras.backend.backend() == framework


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────


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
        with _keras().StatelessScope(state_mapping=list(zip(variables, values))):
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


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────

Choose = Callable[[Any], Any]  # layer ↦ the gradient that it shall have instead of its own, or None
Wrap = Callable[[Any, Any], Callable[..., Any]]  # function, gradient ↦ the function with that gradient

_choosers = threading.local()  # what other threads call is left alone


@contextlib.contextmanager
def layers_called_by(choose: Choose, wrap: Wrap) -> Iterator[None]:
    """Ask a function, for each layer that is called, which gradient it shall have."""
    import keras  # a layer that is called in the block may be the first of the program

    native = keras.layers.Layer.__call__

    @functools.wraps(native)
    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        ask = getattr(_choosers, "choose", None)
        symbolic = any(is_symbol(type(leaf)) for leaf in keras.tree.flatten((args, kwargs)))
        gradient = None if ask is None or symbolic else ask(layer)
        if gradient is None:
            return native(layer, *args, **kwargs)
        return _given(layer, gradient, functools.partial(native, layer), wrap, *args, **kwargs)

    outer = getattr(_choosers, "choose", None)
    _choosers.choose = choose
    keras.layers.Layer.__call__ = call
    try:
        yield
    finally:
        keras.layers.Layer.__call__ = native
        _choosers.choose = outer


def called_as(layer: Any, choose: Choose, wrap: Wrap) -> Callable[..., Any]:
    """Give what a layer calls, with the gradient that is chosen for the layer, if there is one."""
    gradient = choose(layer)
    return layer.call if gradient is None else functools.partial(_given, layer, gradient, layer.call, wrap)


def _given(
    layer: Any, gradient: Any, called: Callable[..., Any], wrap: Wrap, *args: Any, **kwargs: Any
) -> Any:
    """Call a layer with a gradient that knows the arguments by the names that the layer has for them."""
    known = [*inspect.signature(layer.call).parameters, *(f"input_{i}" for i in range(len(args)))]
    positions = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in known[: len(args)]]
    named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in kwargs]
    run = functools.partial(called)
    run.__signature__ = inspect.Signature([*positions, *named])  # type: ignore[attr-defined]
    run.__name__ = layer.name  # type: ignore[attr-defined]
    return wrap(run, gradient)(*args, **kwargs)
