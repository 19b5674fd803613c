"""What a rule reaches without being handed it: numbers, functions, objects and tensors behind its names.

Dynamo runs a rule without reading it, and so would never see that `self.tau`, a closure cell or a global has
changed. So the code of a rule is looked through for names, and what they mean now is followed: the cells and
globals of the body, of `grad` and of the functions they call, and from object to object along the attributes
that this code names. For each function a *reader* is written, a function with its cells and its globals that
reads the same places. Dynamo follows that one, and guards on what it reads as it does for plain code.

Too much is followed rather than too little: an attribute counts if any of this code names it. What an
installed package, other than that of the rule, keeps for itself is not followed.
"""

from __future__ import annotations

import dis
import enum
import functools
import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

from pullback.errors import HostError
from pullback.hosts import ROOTS
from pullback.rule import Rule, cells, global_names, written

_NUMBERS = (bool, int, float, complex, str, bytes)
_SINGLE = (type(None), enum.Enum, torch.dtype, torch.device, torch.layout, BuiltinFunctionType)
_ASKING = ("getattr", "hasattr")  # for a name in quotes, or for any
_ANY = {"vars", "__dict__", "attrgetter", "__getattribute__"}  # names that stand for every attribute
_CODE = (FunctionType, MethodType, functools.partial, torch.nn.Module)
_MANY = 1000  # elements of a container

Parts = Iterator[tuple[str, Any, Any, str]]


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """One thing that a rule reads: the holder, how it is found there, and the input that it becomes."""

    holder: Any
    how: str  # "cell", "global", "attribute", "item", "rule"
    key: Any
    value: Any  # what is followed from there; None for a tensor
    index: int | None  # among the tensors and modules that are handed over


class Guards:
    """Follow the names of a function, and what it is given that is no data; `texts` are its readers."""

    def __init__(self, function: Any, given: Sequence[Any], where: str) -> None:
        self.where = where
        self._home = _package(written(function))
        self.names: set[str] = set()
        self._asked: set[str] = set()  # names in quotes
        while True:  # a name that is found late counts for objects that were found early
            known = len(self.names), len(self._asked)
            self.reads: list[Read] = []
            self.count = 0
            self.texts: list[tuple[FunctionType | None, list[str], list[str]]] = []
            self._seen: dict[int, Any] = {}
            self._waiting: list[FunctionType] = []
            reader = self._reader(None)
            for i, value in enumerate(given):
                self._follow(value, f"pb_given[{i}]", reader)
            self._enter(function)
            while self._waiting:
                self._function(self._waiting.pop(0))
            if (len(self.names), len(self._asked)) == known:
                break

    @property
    def inputs(self) -> list[Any]:
        """List the modules that are handed over; None stands for a tensor."""
        return [read.value for read in self.reads if read.index is not None]

    # ── functions ────────────────────────────────────────────────────────────────────────────────────────

    def _reader(self, function: FunctionType | None) -> tuple[list[str], list[str]]:
        lines: list[str] = []
        inputs: list[str] = []
        self.texts.append((function, lines, inputs))
        return lines, inputs

    def _enter(self, function: Any) -> None:
        """Read a function later, with a reader of its own; an external one runs in every call anyway."""
        if hasattr(function, "external"):
            return
        if id(function) not in self._seen and self._is_followed(function):
            self._seen[id(function)] = function
            self._waiting.append(function)

    def _function(self, function: FunctionType) -> None:
        reader = self._reader(function)
        rule = getattr(function, "rule", None)
        for key in ("body", "pushforward") if isinstance(rule, Rule) else ():
            part = getattr(rule, key)
            if isinstance(part, FunctionType):  # the rule's own, which nobody changes
                self.reads.append(Read(function, "rule", key, part, None))
                self._enter(part)
            elif part is not None:
                self._meet(function, "rule", key, part, f"function.rule.{key}", reader)
        code = function.__code__
        own = _package(function) not in _LIBRARIES
        if own:
            self.names.update(_names(code))
            self._asked.update(_asked(code))
        for name, value in cells(function):
            if own or type(value).__module__ != "pullback.hosts.dynamo":
                self._meet(function, "cell", name, value, name, reader)
        for name in global_names(code) if own else ():
            if name in function.__globals__:
                self._meet(function, "global", name, function.__globals__[name], name, reader)

    # ── values ───────────────────────────────────────────────────────────────────────────────────────────

    def _meet(self, holder: Any, how: str, key: Any, value: Any, path: str, reader: Any) -> None:
        """Take note of one read, and follow what stands there."""
        lines, inputs = reader
        if isinstance(value, torch.Tensor) or (isinstance(value, torch.nn.Module) and how != "module"):
            kept = None if isinstance(value, torch.Tensor) else value
            if kept is None or id(value) not in self._seen:
                self.reads.append(Read(holder, how, key, kept, self.count))
                self.count += 1
                inputs.append(path)
            else:
                self.reads.append(Read(holder, how, key, kept, None))
            if kept is not None:
                self._follow(value, path, reader)
            return
        if type(value) in _NUMBERS:
            lines.append(f"pb_equal({path})")
            return
        if isinstance(value, np.ndarray):
            raise HostError.about(
                self.where,
                found=f"it reads {path.replace('pb_given[0]', 'self')}, a NumPy array, while it is compiled",
                expected="tensors, numbers, strings, and structures and objects of these",
                why="PyTorch does not see when its numbers change",
                fix=f"torch.from_numpy({path.rsplit('.')[-1]}), or pass it as an argument",
            )
        self.reads.append(Read(holder, how, key, value, None))
        self._follow(value, path, reader)

    def _follow(self, value: Any, path: str, reader: Any) -> None:
        """Go on from an object."""
        if isinstance(value, ModuleType) and _top(value.__name__) in _LIBRARIES:
            return
        reader[0].append(f"pb_same({path})")
        if id(value) in self._seen or isinstance(value, _SINGLE):
            return
        if isinstance(value, FunctionType):
            self._enter(value)
            return
        self._seen[id(value)] = value
        for how, key, part, text in self._parts(value, path):
            self._meet(value, how, key, part, text, reader)

    def _parts(self, value: Any, path: str) -> Parts:
        """List what can be reached from an object: how, by which key, what, and the text that reads it."""
        if isinstance(value, MethodType):
            for name in ("__self__", "__func__"):
                yield "method", name, getattr(value, name), f"{path}.{name}"
        elif isinstance(value, functools.partial):
            for name in ("func", "args", "keywords"):
                yield "partial", name, getattr(value, name), f"{path}.{name}"
        elif isinstance(value, (dict, list, tuple, set, frozenset, deque)):
            yield from self._elements(value, path)
        if isinstance(value, ModuleType):
            for name in sorted(self.names & set(vars(value))):
                yield "attribute", name, vars(value)[name], f"{path}.{name}"
        elif isinstance(value, torch.nn.Module):
            yield from self._of_module(value, path)
        elif not isinstance(value, type):
            yield from self._attributes(value, path, lambda name: self._is_named(name))
        if not isinstance(value, ModuleType):
            yield from self._of_class(value, path)

    def _elements(self, value: Any, path: str) -> Parts:
        if len(value) > _MANY:
            raise HostError.about(
                self.where,
                found=f"it reads a {type(value).__name__} of {len(value)} elements while it is compiled",
                expected=f"at most {_MANY}",
                why="PyTorch looks at each of them in every call, to see whether it has changed",
                fix="make it a tensor, or pass it as an argument",
            )
        yield "length", None, len(value), f"pb_len({path})"
        if isinstance(value, (set, frozenset)):
            for element in value:
                if type(element) in _NUMBERS:
                    yield "length", None, True, f"{element!r} in {path}"
            return
        for i, key in enumerate(value if isinstance(value, dict) else range(len(value))):
            simple = type(key) in (int, str, bool)
            yield "item", key, value[key], f"{path}[{key!r}]" if simple else f"pb_list({path}.values())[{i}]"

    def _of_module(self, module: torch.nn.Module, path: str) -> Parts:
        """List the attributes of a module; its parameters and buffers are handed over with it."""
        everything = _package(type(module)) == "torch"
        yield from self._attributes(
            module,
            path,
            lambda name: name == "training" or (name not in _INSIDE and (everything or self._is_named(name))),
        )
        for name, child in module._modules.items():
            if child is not None:
                yield (
                    "module",
                    name,
                    child,
                    f"{path}.{name}" if name.isidentifier() else f"{path}._modules[{name!r}]",
                )

    def _attributes(self, value: Any, path: str, wanted: Callable[[str], bool]) -> Parts:
        """List what an object has itself."""
        if _package(type(value)) == "pullback":  # its names are not the user's, but it may hold his functions
            held = getattr(value, "__dict__", {}).items()
            wanted = {name for name, part in held if isinstance(part, _CODE)}.__contains__
        for name in sorted(self._asked):  # what is not there today may be tomorrow
            if _package(type(value)) not in _LIBRARIES and not hasattr(value, name):
                yield "length", None, False, f"pb_has({path}, {name!r})"
        for name, part in list(getattr(value, "__dict__", {}).items()):
            if isinstance(name, str) and name.isidentifier() and wanted(name):
                yield "attribute", name, part, f"{path}.{name}"

    def _of_class(self, value: Any, path: str) -> Parts:
        """List what an object has from its class: constants and slots. Methods are read later."""
        own = {} if isinstance(value, type) else getattr(value, "__dict__", {})
        line = value.__mro__ if isinstance(value, type) else type(value).__mro__
        found: set[str] = set()
        for kind in line:
            if _package(kind) not in _LIBRARIES:
                found.update(name for name in vars(kind) if self._is_named(name) or name in _CALLED)
        for name in sorted(found - set(own)):
            part = inspect.getattr_static(value, name, None)
            code = (
                getattr(part, "fget", None) or getattr(part, "func", None) or getattr(part, "__func__", part)
            )
            if isinstance(code, FunctionType):
                self.reads.append(Read(value, "class", name, code, None))
                self._enter(code)
            elif not name.startswith("__") and hasattr(value, name):  # a slot may be empty
                yield "attribute", name, getattr(value, name), f"{path}.{name}"

    def _is_named(self, name: str) -> bool:
        return name in self.names or not self.names.isdisjoint(_ANY)

    def _is_followed(self, function: FunctionType) -> bool:
        """Tell whether a function is the user's: not one of an installed package, but for his own."""
        package = _package(function)
        if package in _LIBRARIES:
            return package == "pullback"
        return package == self._home or "site-packages" not in function.__code__.co_filename


_LIBRARIES = sys.stdlib_module_names | {*ROOTS, "keras", "numpy", "scipy", "array_api_compat", "pullback"}
_INSIDE = frozenset(vars(torch.nn.Module()))  # what PyTorch keeps in a module
_CALLED = {"__call__", "forward", "__getattr__", "__getitem__"}  # by the language, without their names


def _top(name: Any) -> str:
    return str(name or "").partition(".")[0]


def _package(value: Any) -> str:
    """Name the package that a function or class was written in; a decorated function claims another."""
    space = getattr(value, "__globals__", None)
    return _top(getattr(value, "__module__", None) if space is None else space.get("__name__"))


@functools.lru_cache(maxsize=4096)
def _names(code: CodeType) -> frozenset[str]:
    """List the names in a function and in the functions inside it."""
    inside = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(code.co_names).union(_asked(code), *inside)


@functools.lru_cache(maxsize=4096)
def _asked(code: CodeType) -> frozenset[str]:
    """List the names that a function, or one inside it, asks for in quotes; one of `_ANY` for a variable."""
    found: set[str] = set()
    instructions = list(dis.get_instructions(code))
    for i, instruction in enumerate(instructions):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval in _ASKING:
            depth = 0
            for later in instructions[i + 1 :]:  # up to the one that gives the second argument
                depth += dis.stack_effect(later.opcode, later.arg, jump=False)
                if depth >= 2:
                    known = later.opname.startswith("LOAD_CONST") and isinstance(later.argval, str)
                    found.add(later.argval if known else "vars")
                    break
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _asked(constant)
    return frozenset(found)
