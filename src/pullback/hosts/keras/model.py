"""Keras models and layers with other gradients inside: what an override of one is.

It is the model itself, seen with another class: layers, weights and losses are those of the original. What a
trainer keeps, compiled functions above all, is its own, and so are its name and its places in other models. A
`.keras` file holds the model, the kinds, and the names of the gradients.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

import keras

from pullback import hosts
from pullback.errors import OverrideError
from pullback.hosts.base import Host
from pullback.hosts.overrides import Gradients, Override, Seen, seen_as

_PLACES = ("_inbound_nodes", "_outbound_nodes")

_registered = keras.saving.register_keras_serializable(package="pullback", name="Overridden")


@_registered
class OverriddenModel(Seen):
    """A model with other gradients inside, as a `.keras` file names it."""

    __slots__ = ()

    def get_config(self) -> dict[str, Any]:
        gradients = [
            [kind.__name__ if isinstance(kind, type) else kind, keras.saving.serialize_keras_object(gradient)]
            for kind, gradient in self._pullback.stored().items()
        ]
        return {"model": keras.saving.serialize_keras_object(self._pullback.original), "gradients": gradients}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        make = functools.partial(keras.saving.deserialize_keras_object, custom_objects=custom_objects)
        gradients = {kind: make(given) for kind, given in config["gradients"]}
        return Override.again(make(config["model"]), gradients)


@functools.cache
def _of_a_trainer() -> frozenset[str]:
    """Name the attributes in which Keras keeps what belongs to training, and a layer has not."""
    model = keras.Model(name="model")
    model.compile(keras.optimizers.SGD(name="sgd"), "mse")
    names = vars(model).keys() - vars(keras.layers.Layer(name="layer")).keys() | {"history"}
    # What a checkpoint knows is shared.
    return frozenset(name for name in names if not name.startswith("_self_"))


def overridden(model: Any, gradients: Gradients, host: Host) -> Any:
    """Give a model or layer again, with other gradients by kind."""
    backend = keras.backend.backend()
    if host is not hosts.host(backend):
        raise OverrideError.about(
            model.name,
            found=f"kinds of {host.name}, and a model that runs on {hosts.host(backend).name}",
            expected="kinds of the framework that the model runs on",
            fix='pb.override(model, {keras.ops.relu: gradient})   # or "relu"',
        )
    names = {*_PLACES, "name"} | (_of_a_trainer() if isinstance(model, keras.Model) else set())
    own = {name: getattr(model, name) for name in names if hasattr(model, name)}
    own |= {name: list(own[name]) for name in _PLACES if name in own}
    # The functions of the original run the original.
    own |= {name: None for name in own if name.endswith("_function")}
    running = import_module(f"pullback.hosts.{backend}.model")
    override = Override(model, gradients.by_kind, running.word, running.inside(model, gradients), own)
    # A `.keras` file names the module: who cannot load it is told what to import.
    return seen_as(OverriddenModel, override, "call", names, module="pullback.keras", made=_registered)
