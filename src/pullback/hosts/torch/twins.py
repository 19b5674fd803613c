"""Functions again, with other tensors in the places that they read.

A tensor that a rule reaches through a name is handed to a compiled call as one more input, so that PyTorch
sees it. The body must find that input where it looks for the tensor, and `grad`, which runs later, too. So
the functions and objects on the way to it are copied, and nobody else's are touched.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Sequence
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from pullback.errors import HostError
from pullback.hosts.torch.guards import Guards, Place
from pullback.hosts.torch.modules import snapshot


class Twins:
    """Copy what leads to the inputs of one call."""

    def __init__(self, guards: Guards, inputs: Sequence[Any]) -> None:
        self._where = guards.where
        self._inputs = inputs
        self._places: dict[int, list[Place]] = {}
        for place in guards.places:
            self._places.setdefault(id(place.holder), []).append(place)
        self._made: dict[int, Any] = {}
        self._leads = _leading(guards.places)
        for module in guards.inputs:
            if module is not None:
                self.module(module)

    def module(self, module: torch.nn.Module) -> Any:
        """Copy a module with the tensors that it has during this call; `grad` runs later."""
        if id(module) not in self._made:
            for part, twin in zip(module.modules(), (made := snapshot(module)).modules()):
                self._made.setdefault(id(part), twin)
            for part in module.modules():
                self._fill(part, self._made[id(part)])
            return made
        return self._made[id(module)]

    def inside(self, value: Any) -> Any:
        """Give an argument with twins in it: a structure is the call's own."""
        if type(value) in (list, tuple):
            return type(value)([self.inside(part) for part in value])
        if type(value) is dict:
            return {key: self.inside(part) for key, part in value.items()}
        return self.of(value)

    def of(self, value: Any) -> Any:
        """Give the twin of a value; itself where it leads to no input."""
        if id(value) in self._made:
            return self._made[id(value)]
        if isinstance(value, torch.nn.Module):
            return self.module(value)
        if id(value) not in self._leads:
            return value
        if isinstance(value, (MethodType, functools.partial, tuple)):
            return self._rebuilt(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, type):
            raise self._refused(value.__name__)
        if isinstance(value, ModuleType):
            twin: Any = ModuleType(value.__name__)
            vars(twin).update(vars(value))
        else:
            twin = copy.copy(value)
        self._made[id(value)] = twin
        self._fill(value, twin)
        return twin

    def _found(self, place: Place) -> Any:
        if place.index is not None and place.value is None:
            return self._inputs[place.index]
        return self.of(place.value)

    def _fill(self, value: Any, twin: Any) -> None:
        """Put inputs and twins into the places of a copy."""
        for place in self._places.get(id(value), ()):
            if (
                place.index is None
                and id(place.value) not in self._leads
                and id(place.value) not in self._made
            ):
                continue
            if place.how == "attribute":
                if isinstance(twin, torch.nn.Module):
                    twin.__dict__[place.key] = self._found(place)
                else:
                    object.__setattr__(twin, place.key, self._found(place))
            elif place.how == "item":
                twin[place.key] = self._found(place)
            elif place.how == "class":
                self._method(value, twin, place)

    def _method(self, value: Any, twin: Any, place: Place) -> None:
        """Give a copy a method of its own."""
        found = inspect.getattr_static(value, place.key)
        if place.key.startswith("__") or not isinstance(found, (FunctionType, staticmethod)):
            raise self._refused(f"{type(value).__name__}.{place.key}")
        method = self.of(place.value)
        twin.__dict__[place.key] = method if isinstance(found, staticmethod) else MethodType(method, twin)

    def _refused(self, found: str) -> HostError:
        error: HostError = HostError.about(
            self._where,
            found=f"it reads a tensor through {found} while it is compiled",
            expected="a tensor in a closure, in a global or in an object",
            why="PyTorch would not see when it changes",
            fix="pass it as an argument",
        )
        return error

    def _rebuilt(self, value: Any) -> Any:
        parts = {
            place.key: self._found(place)
            for place in self._places.get(id(value), ())
            if place.how != "attribute"
        }
        if isinstance(value, MethodType):
            return MethodType(parts["__func__"], parts["__self__"])
        if isinstance(value, functools.partial):
            return functools.partial(parts["func"], *parts["args"], **parts["keywords"])
        items = [parts.get(i, item) for i, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)

    def _function(self, function: FunctionType) -> FunctionType:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        space = function.__globals__
        places = [
            p for p in self._places.get(id(function), ()) if p.index is not None or id(p.value) in self._leads
        ]
        if any(place.how == "global" for place in places):
            space = dict(space)
        for place in places:
            if place.how == "cell":
                cells[place.key] = CellType()
        twin = FunctionType(
            function.__code__, space, function.__name__, function.__defaults__, tuple(cells.values())
        )
        twin.__kwdefaults__ = function.__kwdefaults__
        twin.__dict__.update(function.__dict__)
        self._made[id(function)] = twin  # it may reach itself
        changed: dict[str, Any] = {}
        for place in places:
            found = self._found(place)
            if place.how == "cell":
                cells[place.key].cell_contents = found
            elif place.how == "global":
                space[place.key] = found
            else:
                changed[place.key] = found
        if changed:  # what a host has measured of a rule, it has measured of its cells
            vars(twin)["rule"] = dataclasses.replace(vars(function)["rule"], **changed)
        return twin


def _leading(places: Sequence[Place]) -> set[int]:
    """Find what leads to an input, over however many steps."""
    leads = {id(place.holder) for place in places if place.index is not None}
    leads |= {id(place.value) for place in places if place.index is not None and place.value is not None}
    while True:
        more = {id(place.holder) for place in places if place.value is not None and id(place.value) in leads}
        if more <= leads:
            return leads
        leads |= more
