"""Rules in Keras models: what happens when a rule is called on a `KerasTensor`.

A KerasTensor is a place in a model, not a value. The call becomes a layer that calls the rule when the model
runs, and that a `.keras` file stores by the name of the function.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

from pullback import hosts, tree
from pullback.hosts import models  # noqa: F401  registered with Keras there
from pullback.replace import finite
from pullback.replace.argmax import argmax_one_hot
from pullback.replace.clip import clip_gradient
from pullback.replace.function import plain_name
from pullback.replace.loss import loss_rule, weighted_whole
from pullback.replace.reverse import reverse_gradient
from pullback.replace.scale import scale_gradient
from pullback.replace.steps import heaviside, round, sign
from pullback.replace.stop import forbid_gradient, stop_gradient
from pullback.replace.with_gradient import with_gradient
from pullback.rule import Rule, name_of

for _function in (
    scale_gradient,
    reverse_gradient,
    clip_gradient,
    stop_gradient,
    forbid_gradient,
    finite.rule_function,
    heaviside,
    sign,
    round,
    argmax_one_hot,
):  # a `.keras` file names them
    keras.saving.register_keras_serializable(package="pullback")(_function)


@keras.saving.register_keras_serializable(package="pullback")
class RuleLayer(keras.layers.Layer):
    """Call a rule inside a Keras model.

    `args` and `kwargs` are the arguments of the call, with `{"tensor": i}` where the i-th input stands.
    """

    def __init__(self, function: Any, args: Any = None, kwargs: Any = None, **options: Any) -> None:
        super().__init__(autocast=False, **options)
        self.function: Callable[..., Any] = (
            keras.saving.deserialize_keras_object(function) if isinstance(function, dict) else function
        )
        parts = getattr(self.function, "parts", ())
        self.parts = [
            part for part in parts if isinstance(part, keras.layers.Layer)
        ]  # Keras finds their weights
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


def place(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Put a rule into the model that is being built."""
    leaves, structure = tree.flatten([list(args), kwargs])
    tensors: list[Any] = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, keras.KerasTensor):
            leaves[i] = {"tensor": len(tensors)}
            tensors.append(leaf)
    positional, keywords = tree.unflatten(structure, leaves)
    for part in getattr(function, "parts", ()):
        if isinstance(part, keras.layers.Layer) and not part.built:
            part(*args, **kwargs)  # makes its weights; the result is not used
    return RuleLayer(function, positional, keywords)(*tensors)


@keras.saving.register_keras_serializable(package="pullback")
class RuleLoss(keras.losses.Loss):
    """A loss with a gradient of its own, made by `pb.loss`."""

    def __init__(
        self,
        value: Any,
        gradient: Any,
        *,
        like: Any = None,
        differs: str | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        value, gradient, like = (
            keras.saving.deserialize_keras_object(f) if isinstance(f, dict) else f
            for f in (value, gradient, like)
        )
        reduction = options.get("reduction", "sum_over_batch_size")
        self.function = loss_rule(value, gradient, like, differs, reduction)
        self.rule: Rule = self.function.rule
        self.parts = {"value": value, "gradient": gradient, "like": like}
        self.differs = differs
        super().__init__(name=name or plain_name(value), **options)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        reduced = super().__call__(y_true, y_pred, sample_weight)
        if _called.whole and len(reduced.shape):
            raise weighted_whole(self.rule.where)
        return reduced

    def call(self, y_true: Any, y_pred: Any) -> Any:
        losses = self.function(*_same_rank(y_true, y_pred))
        _called.whole = hosts.of(losses).spec(losses).shape == ()
        return losses

    def get_config(self) -> dict[str, Any]:
        parts = {
            name: None if part is None else keras.saving.serialize_keras_object(part)
            for name, part in self.parts.items()
        }
        return {**super().get_config(), **parts, "differs": self.differs, "dtype": self._dtype}


_called = threading.local()  # whether the last loss of this thread was one for a whole batch


def _same_rank(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Give labels and predictions the same rank, as Keras does for every loss that is a plain function.

    One may have a last axis of length one that the other lacks, and (B, 1) less (B,) would be (B, B).
    """
    ranks = len(y_true.shape), len(y_pred.shape)
    if ranks == (1, 2) and y_pred.shape[-1] == 1:
        return keras.ops.expand_dims(y_true, -1), y_pred
    if ranks == (2, 1) and y_true.shape[-1] == 1:
        return y_true, keras.ops.expand_dims(y_pred, -1)
    if ranks[0] == ranks[1] + 1 and y_true.shape[-1] == 1:
        return keras.ops.squeeze(y_true, -1), y_pred
    if ranks[1] == ranks[0] + 1 and y_pred.shape[-1] == 1:
        return y_true, keras.ops.squeeze(y_pred, -1)
    return y_true, y_pred


_choosers = threading.local()  # what other threads call is left alone


@contextlib.contextmanager
def layers_called_by(choose: Callable[[Any], Any]) -> Iterator[None]:
    """Ask a function, for each layer that is called, which gradient it shall have instead of its own."""
    native = keras.layers.Layer.__call__

    @functools.wraps(native)
    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        ask = getattr(_choosers, "choose", None)
        gradient = None if ask is None or _symbolic(args, kwargs) else ask(layer)
        if gradient is None:
            return native(layer, *args, **kwargs)
        return _given(layer, gradient, functools.partial(native, layer), *args, **kwargs)

    outer = getattr(_choosers, "choose", None)
    _choosers.choose = choose
    keras.layers.Layer.__call__ = call
    try:
        yield
    finally:
        keras.layers.Layer.__call__ = native
        _choosers.choose = outer


def called_as(layer: Any, choose: Callable[[Any], Any]) -> Callable[..., Any]:
    """Give what a layer calls, with the gradient that is chosen for the layer, if there is one."""
    gradient = choose(layer)
    return layer.call if gradient is None else functools.partial(_given, layer, gradient, layer.call)


def _given(layer: Any, gradient: Any, called: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a layer with a gradient that knows the arguments by the names that the layer has for them."""
    known = [*inspect.signature(layer.call).parameters, *(f"input_{i}" for i in range(len(args)))]
    places = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in known[: len(args)]]
    named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in kwargs]
    run = functools.partial(called)
    run.__signature__ = inspect.Signature([*places, *named])  # type: ignore[attr-defined]
    run.__name__ = layer.name  # type: ignore[attr-defined]
    return with_gradient(run, gradient, differs=f"overridden by {name_of(gradient)}")(*args, **kwargs)


def _symbolic(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(isinstance(leaf, keras.KerasTensor) for leaf in tree.flatten([list(args), kwargs])[0])
