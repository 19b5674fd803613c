"""Keras models and layers inside an override, on TensorFlow."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pullback.errors import OverrideError
from pullback.hosts.keras import called_as
from pullback.hosts.overrides import Gradients
from pullback.hosts.tensorflow import private
from pullback.hosts.tensorflow.kinds import word
from pullback.hosts.tensorflow.override import Overridden, Overriding, SharedError

__all__ = ["inside", "word"]


def inside(model: Any, gradients: Gradients) -> Any:
    """Give what a model calls, with other gradients by kind."""
    return Inside(model, functools.partial(Overriding, gradients, strict=False))


class Inside(Overridden):
    """The call of a layer or model, run where it is called.

    What a layer leaves behind, its losses, masks and updates, belongs to the graph of the caller. A function
    that was traced before is met by surprise; eager mode then runs a copy of the model, in a graph of ours.
    """

    def __init__(self, model: Any, overriding: Callable[[], Overriding]) -> None:
        super().__init__(model.call, overriding)
        self.__name__ = model.name
        self._model = model
        self._copy = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        eager = tf.executing_eagerly()
        leaves = tf.nest.flatten((args, kwargs)) if eager else ()
        if eager and (self._copy or any(tf.is_tensor(x) and private.has_tangent(x) for x in leaves)):
            return super().__call__(*args, **kwargs)
        context = self._overriding()
        try:
            with context:
                call = called_as(self._model, context.layer_gradient, context.gradients.wrap)
                outputs = call(*args, **kwargs)
        except SharedError:
            if not eager:
                raise _function_inside(self.__name__) from None
            self._copy = True
            return super().__call__(*args, **kwargs)
        return self._checked(context, outputs)


def _function_inside(name: str) -> OverrideError:
    return OverrideError.about(
        name,
        found="the model calls a tf.function with operations of the kind inside, in a graph",
        expected="layers written in Python, down to the operations of the kind",
        why="it is traced once and shared with others: its gradients are fixed, and must stay so",
        fix="call the function's Python in the layer: f.python_function; or train with run_eagerly=True",
    )
