"""Finding the host of a call from the type of its data.

Only frameworks that the program has already imported are looked at, so `import pullback` stays cheap and
imports none. What a type is, is found once and remembered.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from pullback.errors import HostError
from pullback.hosts.base import Host, Opener
from pullback.hosts.keras import is_symbol
from pullback.hosts.numpy import HOST as NUMPY
from pullback.rule import Rule, reach


class Framework(NamedTuple):
    """What is known of a framework before it is imported; its host is the module of its name in here."""

    needed: str  # the least version
    roots: tuple[str, ...]  # the packages that its types stand in
    written: str  # the line by which a user imports it
    tensor: str  # how a tensor is made of another array
    constant: str  # and how of numbers
    namespace: str  # the module that speaks the array API for it


SUPPORTED = {
    "tensorflow": Framework(
        needed="2.16",
        roots=("tensorflow",),
        written="import tensorflow as tf",
        tensor="tf.constant",
        constant="tf.constant",
        namespace="pullback.hosts.tensorflow.namespace",
    ),
    "jax": Framework(
        needed="0.9",
        roots=("jax", "jaxlib"),
        written="import jax.numpy as jnp",
        tensor="jnp.asarray",
        constant="jnp.asarray",
        namespace="jax.numpy",
    ),
    "torch": Framework(
        needed="2.6",
        roots=("torch", "functorch"),
        written="import torch",
        tensor="torch.as_tensor",
        constant="torch.tensor",
        namespace="array_api_compat.torch",
    ),
}
ROOTS = {root: name for name, framework in SUPPORTED.items() for root in framework.roots}


class Role(Enum):
    """What a leaf of an argument is when no host owns it."""

    STATIC = "static"
    NUMBER = "number"  # a Python float: a tensor only if nothing else is one
    ARRAY = "array"  # NumPy: becomes a tensor of the host of its neighbours
    SYMBOL = "symbol"  # a KerasTensor: a place in a model, not a value


class _Roles(dict[type, "Host | Role"]):
    """What every type is that was met so far."""

    def __missing__(self, kind: type) -> Host | Role:
        found = self[kind] = _find(kind)
        return found


_roles = _Roles(
    {
        float: Role.NUMBER,
        complex: Role.NUMBER,
        np.ndarray: Role.ARRAY,
        int: Role.STATIC,
        bool: Role.STATIC,
        str: Role.STATIC,
        type(None): Role.STATIC,
    }
)
role = _roles.__getitem__  # tells which host owns values of a type, or what else they are


def _find(kind: type) -> Host | Role:
    if issubclass(kind, (np.ndarray, np.floating, np.complexfloating)):
        return Role.ARRAY
    if is_symbol(kind):
        return Role.SYMBOL
    for base in kind.__mro__:
        root = base.__module__.partition(".")[0]
        candidates = [host(ROOTS[root])] if root in ROOTS else loaded() if root == "keras" else []
        for candidate in candidates:
            if candidate.owns(kind):
                return candidate
    return Role.STATIC


_openers: dict[type, Opener] = {}


def opener(value: Any) -> Opener | None:
    """Find how a structure of a framework's or a user's own kind is taken apart; None for a leaf."""
    kind = type(value)
    found = _openers.get(kind)
    if found is None and kind.__module__ != "builtins" and role(kind) is Role.STATIC:
        found = next((found for h in loaded() if (found := h.opener(value)) is not None), None)
        if found is not None:  # what is a leaf today may be registered tomorrow
            _openers[kind] = found
    return found


# ── frameworks ───────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def host(framework: str) -> Host:
    """Give the host of a framework that is imported; refuse one that is too old."""
    found, needed = str(getattr(sys.modules[framework], "__version__", "")), SUPPORTED[framework].needed
    if _numbers(found) < _numbers(needed):
        raise HostError.about(
            "pullback",
            found=f"{framework} {found}",
            expected=f"{framework} {needed} or later",
            fix=f"pip install --upgrade '{framework}>={needed}'",
        )
    speaking: Host = import_module(f"{__name__}.{framework}").HOST
    return speaking


def framework_of(host: Host) -> str:
    """Name the framework of a host; nothing for NumPy, and for a host of somebody else's."""
    speaking = {name: sys.modules.get(f"{__name__}.{name}") for name in SUPPORTED}
    return next((name for name, module in speaking.items() if getattr(module, "HOST", None) is host), "")


def part(room: str, framework: str) -> ModuleType | None:
    """Import what a room says of a framework, in a file of its name; None where it says nothing."""
    name = f"pullback.{room}.{framework}"
    return import_module(name) if framework and find_spec(name) else None


def _numbers(version: str) -> tuple[int, ...]:
    digits = ("".join(c for c in part if c.isdigit()) for part in version.split("+")[0].split(".")[:2])
    return tuple(int(d or 0) for d in digits)


def loaded() -> list[Host]:
    """List the hosts of the frameworks that the program has imported and that are new enough."""
    hosts = []
    for framework in SUPPORTED:
        if framework in sys.modules and hasattr(sys.modules[framework], "__version__"):
            try:
                hosts.append(host(framework))
            except HostError:  # said when its data are met
                continue
    return hosts


def naming(values: Iterable[Any]) -> Host | None:
    """Find the one framework that functions name, in themselves or in what they call."""
    named = {found for value in values for found in _named(value, 2) if found in sys.modules}
    return host(named.pop()) if len(named) == 1 else None


def _named(value: Any, depth: int) -> set[str]:
    """Name the frameworks that a value comes from, or reaches by name."""
    root = _root(value)
    if root in ROOTS:
        return {ROOTS[root]}
    if root == "keras":
        return {sys.modules["keras"].backend.backend()}
    rule = getattr(value, "rule", None)
    function = rule.function if isinstance(rule, Rule) else value
    function = getattr(function, "__func__", function)
    if depth == 0 or root in ("pullback", "numpy") or not isinstance(function, FunctionType):
        return set()
    return set().union(*(_named(found, depth - 1) for _, found in reach(function)))


def _root(value: Any) -> str:
    """Name the package that a module, a function, a class or an object comes from, a framework's if any."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0]
    lineage = value.__mro__ if isinstance(value, type) else (value, *type(value).__mro__)
    lineage = (*lineage, getattr(value, "__objclass__", None))  # a method of a built-in class
    roots = [str(getattr(part, "__module__", None) or "").partition(".")[0] for part in lineage]
    return next((root for root in roots if root in ROOTS or root == "keras"), roots[0])


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────


def default(function: Any) -> Host:
    """Choose the host for a call whose data are NumPy arrays or numbers only.

    It is the framework that the function names, and NumPy itself for a function that names none.
    """
    return naming([function]) or NUMPY


def among(values: Iterable[Any], function: Any, where: str) -> Host:
    """Find the host that differentiates a function: that of the first tensor among its arguments.

    With NumPy arrays alone it is the framework that the function names; one that names none runs on any.
    """
    for value in values:
        found = role(type(value))
        if not isinstance(found, Role):
            return found
    candidates = [naming([function]), *loaded()]
    chosen = next((host for host in candidates if host is not None), None)
    if chosen is None:
        raise HostError.about(
            where,
            found="the arguments are NumPy arrays or numbers, and no framework is imported",
            expected="a tensor of the framework that differentiates it",
            fix=" or ".join(f"{framework.tensor}(x)" for framework in SUPPORTED.values()),
        )
    return chosen


def of(value: Any) -> Host:
    """Find the host of one value."""
    found = role(type(value))
    return NUMPY if isinstance(found, Role) else found
