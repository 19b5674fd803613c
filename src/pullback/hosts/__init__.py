"""Finding the host of a call from the type of its data.

Only frameworks that the program has already imported are looked at, so `import pullback` stays cheap and
imports none. What a type is, is found once and remembered.
"""

from __future__ import annotations

import sys
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np

from pullback.errors import HostError
from pullback.hosts.base import Host

# framework module → module of ours that speaks it
SUPPORTED = {"tensorflow": "pullback.hosts.tensorflow"}


class Role(Enum):
    """What a leaf of an argument is when no host owns it."""

    STATIC = "static"
    NUMBER = "number"  # a Python float: a tensor only if nothing else is one
    ARRAY = "array"  # NumPy: becomes a tensor of the host of its neighbours
    SYMBOL = "symbol"  # a KerasTensor: a place in a model, not a value


_roles: dict[type, Host | Role] = {
    float: Role.NUMBER,
    complex: Role.NUMBER,
    np.ndarray: Role.ARRAY,
    int: Role.STATIC,
    bool: Role.STATIC,
    str: Role.STATIC,
    type(None): Role.STATIC,
}


def role(kind: type) -> Host | Role:
    """Tell which host owns values of a type, or what else they are."""
    found = _roles.get(kind)
    if found is None:
        found = _roles[kind] = _find(kind)
    return found


def _find(kind: type) -> Host | Role:
    if issubclass(kind, (np.ndarray, np.floating, np.complexfloating)):
        return Role.ARRAY
    if kind.__name__ == "KerasTensor" and kind.__module__.startswith("keras."):
        return Role.SYMBOL
    for host in loaded():
        if host.owns(kind):
            return host
    return Role.STATIC


def loaded() -> list[Host]:
    """List the hosts of the frameworks that the program has imported."""
    return [import_module(module).HOST for framework, module in SUPPORTED.items() if framework in sys.modules]


def default(where: str) -> Host:
    """Choose the host for a call whose data are NumPy arrays or numbers only."""
    hosts = loaded()
    if not hosts:
        raise HostError.about(
            where,
            found="no framework is imported, and the arguments are NumPy arrays or numbers",
            expected=f"one of {', '.join(SUPPORTED)}, imported before the call",
            fix="import tensorflow as tf",
        )
    return hosts[0]


def of(value: Any, where: str) -> Host:
    """Find the host of one value."""
    found = role(type(value))
    return default(where) if isinstance(found, Role) else found
