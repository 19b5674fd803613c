"""Modules, and Keras models and layers, with other gradients inside: what an override of a module is.

It is the module itself, seen with another class: parameters, buffers, submodules, hooks and the mode are the
original's. Only what `compile()` has made of it is its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from pullback.errors import OverrideError
from pullback.hosts.keras import called_as, is_layer
from pullback.hosts.overrides import Gradients, Override, Seen, class_of, seen_as
from pullback.hosts.torch.kinds import word
from pullback.hosts.torch.override import Overridden, Overriding, asking

__all__ = ["inside", "override", "word"]

_OWN = ("_compiled_call_impl",)


def override(function: Any, gradients: Gradients) -> Any:
    """Give a function again, or a context where there is none, with other gradients by kind."""
    overriding = functools.partial(Overriding, gradients, strict=function is None)
    if isinstance(function, torch.nn.Module) and not is_layer(function):
        return _overridden(function, gradients, overriding)
    return overriding() if function is None else Overridden(function, overriding)


class OverriddenModule(Seen):
    """A module with other gradients inside."""

    __slots__ = ()


class Forward(Overridden):
    """The forward of a module inside an override, which may be of the module's own kind."""

    @staticmethod
    def inside(context: Overriding, function: Any, args: Any, kwargs: Any) -> Any:
        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            return module.forward(*args, **kwargs)

        return asking(context, forward)(function, *args, **kwargs)


def _overridden(module: torch.nn.Module, gradients: Gradients, overriding: Callable[[], Overriding]) -> Any:
    """Give a module again, with other gradients by kind."""
    if "forward" in vars(module):
        raise OverrideError.about(
            class_of(module).__name__,
            found="the forward of this one module was set from outside: module.forward = …",
            expected="a module whose class has its forward",
            why="what is set on the module itself would run in the place of the override",
            fix="give it back with `del module.forward`, or override what was set",
        )
    forward = Forward(module, overriding)
    forward.__name__ = class_of(module).__name__
    own = {"_compiled_call_impl": None}
    return seen_as(OverriddenModule, Override(module, gradients.by_kind, word, forward, own), "forward", _OWN)


class Inside(Overridden):
    """The call of a Keras layer or model inside an override, which may be of the layer's own kind."""

    @staticmethod
    def inside(context: Overriding, function: Any, args: Any, kwargs: Any) -> Any:
        return called_as(function, context.module_gradient, context.gradients.wrap)(*args, **kwargs)


def inside(model: Any, gradients: Gradients) -> Any:
    """Give what a Keras model calls, with other gradients by kind."""
    called = Inside(model, functools.partial(Overriding, gradients, strict=False))
    called.__name__ = model.name
    return called
