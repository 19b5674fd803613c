"""Keras models and layers inside an override or a checkpoint, on JAX.

Both trace a function and run it again, so the function must be pure. What a layer leaves behind, its updates,
losses and masks, becomes part of what it returns, and is left where it belongs afterwards.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import keras

from pullback.hosts.jax import kinds
from pullback.hosts.jax.override import override
from pullback.hosts.keras import called_as, layers_called_by, names_layer
from pullback.hosts.overrides import Gradients, class_of, kind_of
from pullback.patched import patched

try:
    from keras.src.backend import AutocastScope, get_keras_mask, get_stateless_scope, set_keras_mask
except ImportError:
    # Then a layer of another dtype than its model rounds its weights twice, and a mask is lost.
    AutocastScope = contextlib.nullcontext

    def get_keras_mask(output: Any) -> Any:
        """Know no mask."""

    def get_stateless_scope() -> Any:
        """Know no scope."""


class _Left:
    """What one call of a model leaves behind."""

    def __init__(self, variables: list[Any]) -> None:
        self.variables = variables
        self.changed: list[int] = []  # by the call, among the variables
        self.losing: list[Any] = []  # the layers that added a loss


@contextlib.contextmanager
def _losses_told(tell: Callable[[Any, Any], None]) -> Iterator[None]:
    """Hand what layers add to their losses, in this thread, to a function."""
    native, here = keras.layers.Layer.add_loss, threading.get_ident()

    @functools.wraps(native)
    def add_loss(layer: Any, loss: Any) -> None:
        (tell if threading.get_ident() == here else native)(layer, loss)

    with patched(keras.layers.Layer, add_loss=add_loss):
        yield


class Inside:
    """The call of a layer or model inside an override. `replaced` counts the occurrences of the last call."""

    def __init__(self, model: Any, gradients: Gradients) -> None:
        self.replaced: dict[str, int] = {}
        self._model = model
        self._gradients = gradients
        self._layers = {kind: g for kind, g in gradients.by_kind.items() if _is_layer(kind)}
        operations = {kind: g for kind, g in gradients.by_kind.items() if kind not in self._layers}

        def pure(left: _Left, values: Any, args: Any, kwargs: Any) -> Any:
            return self._pure(left, values, args, kwargs)

        pure.__name__ = model.name
        self._function = override(pure, gradients._replace(by_kind=operations)) if operations else pure

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        left = _Left(self._model.variables)
        with AutocastScope(None):
            values = [variable.value for variable in left.variables]
        outputs, updates, losses, masks = self._function(left, values, args, kwargs)
        for place, update in zip(left.changed, updates):
            left.variables[place].assign(update)
        for layer, loss in zip(left.losing, losses):
            layer.add_loss(loss)
        for output, mask in zip(keras.tree.flatten(outputs), masks):
            if mask is not None:
                set_keras_mask(output, mask)
        self.replaced |= getattr(self._function, "replaced", {})
        return outputs

    def _pure(self, left: _Left, values: Any, args: Any, kwargs: Any) -> Any:
        replaced = {kinds.name(kind): 0 for kind in self._layers}
        seen: list[str] = []

        def choose(layer: Any) -> Any:
            seen.append(class_of(layer).__name__)
            kind = kind_of(layer, self._layers)
            if kind is None:
                return None
            replaced[kinds.name(kind)] += 1
            return self._layers[kind]

        losses: list[Any] = []

        def lose(layer: Any, loss: Any) -> None:
            found = keras.tree.flatten(loss)
            left.losing += [layer] * len(found)
            losses.extend(found)

        wrap = self._gradients.wrap
        scope = keras.StatelessScope(list(zip(left.variables, values)))
        listening = layers_called_by(choose, wrap) if self._layers else contextlib.nullcontext()
        with scope, listening, _losses_told(lose):
            before = [scope.get_current_value(variable) for variable in left.variables]
            outputs = called_as(self._model, choose, wrap)(*args, **kwargs)
            after = [scope.get_current_value(variable) for variable in left.variables]
        left.changed = [i for i, (a, b) in enumerate(zip(before, after)) if a is not b]
        masks = [get_keras_mask(output) for output in keras.tree.flatten(outputs)]
        self.replaced = replaced
        self._gradients.check(replaced, seen, self._model.name)
        return outputs, [after[i] for i in left.changed], losses, masks


inside = Inside


def word(kind: Any) -> Any:
    """Name a kind by something that can be stored: a layer by its class, an operation by its name."""
    return kind if _is_layer(kind) else kinds.in_jaxpr(kind)


def _is_layer(kind: Any) -> bool:
    # "Dense" is a layer, "tanh" an operation, "MyBlock" somebody's layer
    return names_layer(kind) or (isinstance(kind, str) and kind[:1].isupper())


class Changes(keras.StatelessScope):
    """Note what layers change in a block, instead of changing it."""

    def __init__(self) -> None:
        super().__init__()
        self.variables: list[Any] = []
        self._around = get_stateless_scope()

    @property
    def values(self) -> list[Any]:
        """The new values of the variables."""
        return [self.get_current_value(variable) for variable in self.variables]

    def add_update(self, update: Any) -> None:
        variable, value = update
        if not any(variable is known for known in self.variables):
            self.variables.append(variable)
        super().add_update((variable, value))

    def get_current_value(self, variable: Any) -> Any:
        value = super().get_current_value(variable)
        if value is None and self._around is not None:
            return self._around.get_current_value(variable)
        return value
