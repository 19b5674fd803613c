"""Models of Keras under a log, on any of its backends: what layers give, and the gradients of weights.

No layer is written to, so what is saved or copied in the block carries nothing away: the calls of all layers
and the steps of all optimisers are listened to, while a model is looked at. `fit` is traced anew inside the
block, and behind it.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import keras

from pullback.hosts.keras import is_symbol, numbered
from pullback.patched import patched
from pullback.watching import framework, watchpoints
from pullback.watching.framework import Looking
from pullback.watching.hearing import HEARING

_layers: dict[int, tuple[str, Any]] = {}  # a layer → its path, and the model
_weights: dict[int, tuple[str, Any]] = {}
_listening = contextlib.ExitStack()


def attach(model: Any) -> Looking:
    """Have the layers and weights of a model looked at."""
    layers = list(model._flatten_layers())
    paths = numbered([layer.path for layer in layers])
    own_layers = {id(layer): (path, model) for layer, path in zip(layers, paths)}
    own_weights = {id(weight): (weight.path, model) for weight in model.trainable_variables}
    if not _layers:
        _listening.enter_context(patched(keras.layers.Layer, __call__=_calling(keras.layers.Layer.__call__)))
        native = keras.optimizers.Optimizer.apply
        _listening.enter_context(patched(keras.optimizers.Optimizer, apply=_applying(native)))
    _layers.update(own_layers)
    _weights.update(own_weights)
    _trace_anew(model)

    def detach() -> None:
        for layer in own_layers:
            _layers.pop(layer, None)
        for weight in own_weights:
            _weights.pop(weight, None)
        _trace_anew(model)
        if not _layers:
            _listening.close()

    return Looking(detach)


def _trace_anew(model: Any) -> None:
    """Have `fit` forget what it has compiled."""
    if getattr(model, "train_function", None) is not None:
        model.train_function = None


def _calling(native: Any) -> Any:
    @functools.wraps(native)
    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = native(layer, *args, **kwargs)
        found = _layers.get(id(layer)) if HEARING.open else None
        return outputs if found is None else _seen(outputs, *found)

    return call


def _seen(outputs: Any, path: str, model: Any) -> Any:
    parts = keras.tree.flatten(outputs)
    if any(is_symbol(type(part)) for part in parts):  # a model is being built
        return outputs
    names = [path] if len(parts) == 1 else [f"{path}[{i}]" for i in range(len(parts))]
    seen = [
        framework.of(part).seen(part, watchpoints.number(name, "output", model))
        if hasattr(part, "dtype")
        else part
        for part, name in zip(parts, names)
    ]
    return keras.tree.pack_sequence_as(outputs, seen)


def _applying(native: Any) -> Any:
    @functools.wraps(native)
    def apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
        if HEARING.open:
            variables = trainable_variables
            if variables is None:
                variables = optimizer._trainable_variables
            grads = [_looked(gradient, variable) for gradient, variable in zip(grads, variables)]
        return native(optimizer, grads, trainable_variables)

    return apply


def _looked(gradient: Any, variable: Any) -> Any:
    found = _weights.get(id(variable))
    if found is None:
        return gradient
    number = watchpoints.number(found[0], "weight", found[1])
    if gradient is None:
        HEARING.missing(number)
        return None
    return framework.of(gradient).look(gradient, number)
