"""Rules in Keras models: what happens when a rule is called on a `KerasTensor`.

A KerasTensor is a place in a model, not a value. The call becomes a layer that calls the rule when the model
runs, and that a `.keras` file stores by the name of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras


@keras.saving.register_keras_serializable(package="pullback")
class RuleLayer(keras.layers.Layer):
    """Call a rule inside a Keras model."""

    def __init__(self, function: Callable[..., Any] | dict[str, Any], **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        loaded = keras.saving.deserialize_keras_object(function) if isinstance(function, dict) else function
        self.function: Callable[..., Any] = loaded

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "function": keras.saving.serialize_keras_object(self.function)}


def place(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Put a rule into the model that is being built."""
    return RuleLayer(function)(*args, **kwargs)
