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
from pullback.hosts.torch.captures.guards import Guards, Read
from pullback.hosts.torch.modules import snapshot
from pullback.tree import put


class Twins:
    """Copy what leads to the inputs of one call."""

    def __init__(self, guards: Guards, inputs: Sequence[Any]) -> None:
        self._where = guards.where
        self._inputs = inputs
        self._reads: dict[int, list[Read]] = {}
        for read in guards.reads:
            self._reads.setdefault(id(read.holder), []).append(read)
        self._made: dict[int, Any] = {}
        self._leads = _leading(guards.reads)
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
        return put(self.of, value)

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

    def _found(self, read: Read) -> Any:
        if read.index is not None and read.value is None:
            return self._inputs[read.index]
        return self.of(read.value)

    def _fill(self, value: Any, twin: Any) -> None:
        """Put inputs and twins into the places of a copy."""
        for read in self._reads.get(id(value), ()):
            if read.index is None and id(read.value) not in self._leads and id(read.value) not in self._made:
                continue
            if read.how == "attribute":
                if isinstance(twin, torch.nn.Module):
                    twin.__dict__[read.key] = self._found(read)
                else:
                    object.__setattr__(twin, read.key, self._found(read))
            elif read.how == "item":
                twin[read.key] = self._found(read)
            elif read.how == "class":
                self._method(value, twin, read)

    def _method(self, value: Any, twin: Any, read: Read) -> None:
        """Give a copy a method of its own."""
        found = inspect.getattr_static(value, read.key)
        if read.key.startswith("__") or not isinstance(found, (FunctionType, staticmethod)):
            raise self._refused(f"{type(value).__name__}.{read.key}")
        method = self.of(read.value)
        twin.__dict__[read.key] = method if isinstance(found, staticmethod) else MethodType(method, twin)

    def _refused(self, found: str) -> HostError:
        return HostError.about(
            self._where,
            found=f"it reads a tensor through {found} while it is compiled",
            expected="a tensor in a closure, in a global or in an object",
            why="PyTorch would not see when it changes",
            fix="pass it as an argument",
        )

    def _rebuilt(self, value: Any) -> Any:
        parts = {
            read.key: self._found(read) for read in self._reads.get(id(value), ()) if read.how != "attribute"
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
        reads = [
            p for p in self._reads.get(id(function), ()) if p.index is not None or id(p.value) in self._leads
        ]
        if any(read.how == "global" for read in reads):
            space = dict(space)
        for read in reads:
            if read.how == "cell":
                cells[read.key] = CellType()
        twin = FunctionType(
            function.__code__, space, function.__name__, function.__defaults__, tuple(cells.values())
        )
        twin.__kwdefaults__ = function.__kwdefaults__
        twin.__dict__.update(function.__dict__)
        self._made[id(function)] = twin  # it may reach itself
        changed: dict[str, Any] = {}
        for read in reads:
            found = self._found(read)
            if read.how == "cell":
                cells[read.key].cell_contents = found
            elif read.how == "global":
                space[read.key] = found
            else:
                changed[read.key] = found
        if changed:  # what a host has measured of a rule, it has measured of its cells
            vars(twin)["rule"] = dataclasses.replace(vars(function)["rule"], **changed)
        return twin


def _leading(reads: Sequence[Read]) -> set[int]:
    """Find what leads to an input, over however many steps."""
    leads = {id(read.holder) for read in reads if read.index is not None}
    leads |= {id(read.value) for read in reads if read.index is not None and read.value is not None}
    while True:
        more = {id(read.holder) for read in reads if read.value is not None and id(read.value) in leads}
        if more <= leads:
            return leads
        leads |= more
