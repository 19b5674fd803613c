"""Rules in Keras models: what happens when a rule is called on a `KerasTensor`.

A KerasTensor stands for a value that a model will have. The call becomes a layer that calls the rule when the
model runs, and that a `.keras` file stores by the name of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from pullback import tree
from pullback.hosts.keras import is_layer
from pullback.plan import Plan


@keras.saving.register_keras_serializable(package="pullback")
class RuleLayer(keras.layers.Layer):
    """Call a rule inside a Keras model.

    `args` and `kwargs` are the arguments of the call, with `{"tensor": i}` where the i-th input stands.
    """

    def __init__(self, function: Any, args: Any = None, kwargs: Any = None, **options: Any) -> None:
        super().__init__(autocast=False, **options)
        if isinstance(function, dict):  # from a file
            function, args, kwargs = map(keras.saving.deserialize_keras_object, (function, args, kwargs))
        self.function: Callable[..., Any] = function
        parts = getattr(self.function, "parts", ())
        self.parts = [part for part in parts if is_layer(part)]  # Keras finds their weights
        self.template = [[{"tensor": 0}] if args is None else args, kwargs or {}]

    def call(self, *tensors: Any) -> Any:
        args, kwargs = _fill(self.template, tensors)
        return self.function(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "function": keras.saving.serialize_keras_object(self.function),
            "args": self.template[0],
            "kwargs": self.template[1],
        }


def _fill(template: Any, tensors: Sequence[Any]) -> Any:
    """Put the inputs in their places."""
    if isinstance(template, dict):
        if set(template) == {"tensor"}:
            return tensors[template["tensor"]]
        return {key: _fill(value, tensors) for key, value in template.items()}
    if tree.is_container(template):
        return tree.rebuild(template, [_fill(part, tensors) for part in template])
    return template


def into_model(function: Callable[..., Any], plan: Plan, symbols: Sequence[Any]) -> Any:
    """Put a call into the model that is being built."""
    args, kwargs = plan.arguments(symbols)
    handed = getattr(function, "handed", None)  # what a part is called with, where that is not everything
    for i, part in enumerate(getattr(function, "parts", ())):
        if is_layer(part) and not part.built:  # a call makes its weights; the result is not used
            part(*args, **kwargs) if handed is None else part(handed(i, args))
    template = plan.arguments([{"tensor": i} for i in range(plan.count)])
    return RuleLayer(function, *template)(*symbols)
