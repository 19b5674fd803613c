"""The frameworks as the recorder sees them: one small module each.

None of those modules imports its framework before the program has. A leaf that belongs to none of them is a
static and is left as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from pullback import hosts
from pullback.hosts.keras import is_weight
from pullback.record import jax, tensorflow, torch
from pullback.record.place import inner
from pullback.record.sample import Placeholder, Sample, Spec

FRAMEWORKS: dict[str, ModuleType] = {"tensorflow": tensorflow, "jax": jax, "torch": torch}


def _owner(leaf: Any) -> ModuleType | None:
    if isinstance(leaf, (bool, int, float, complex, str, bytes, type(None), np.ndarray)):
        return None
    return next((module for module in FRAMEWORKS.values() if module.owns(leaf)), None)


def _tensor(leaf: Any) -> Any:
    """Give the tensor inside a variable of Keras, whose backend may be any."""
    return leaf.value if is_weight(type(leaf)) else leaf


def freeze(leaf: Any) -> Any:
    """Copy a tensor to an array, or its shape and dtype to a spec; leave anything else as it is."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return np.array(leaf) if leaf.dtype.kind not in "OSU" else leaf
    leaf = _tensor(leaf)
    owner = _owner(leaf)
    return leaf if owner is None else owner.freeze(leaf)


def spec(leaf: Any) -> Any:
    """Take the shape and dtype of a tensor; leave anything else as it is."""
    if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind not in "OSU":
        return Spec(leaf.shape, leaf.dtype.name)
    leaf = _tensor(leaf)
    owner = _owner(leaf)
    return leaf if owner is None else owner.spec(leaf)


def of(leaves: Iterable[Any]) -> tuple[str, str]:
    """Name the framework and the device of the first tensor among leaves."""
    for leaf in map(_tensor, leaves):
        for name, module in FRAMEWORKS.items():
            if module is _owner(leaf):
                return name, module.device(leaf)
    return "", ""


def naming(function: Any) -> str:
    """Choose the framework for a function that was not seen at work.

    It is the one that the function names, else that its file imports, else the first that is there: a rule
    which names none runs on any.
    """
    there = [name for name in hosts.SUPPORTED if name in sys.modules]
    found = hosts.naming([function])
    if found is not None:
        return next(name for name in there if hosts.host(name) is found)
    globals_ = getattr(inner(function), "__globals__", {})
    roots = {value.__name__.partition(".")[0] for value in globals_.values() if isinstance(value, ModuleType)}
    return next((name for name in there if name in roots), there[0] if there else "")


def thaw(sample: Sample) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give the arguments of a call, with tensors of the framework that it was made in."""
    module = FRAMEWORKS.get(sample.framework)
    leaves = [
        module.thaw(leaf, sample.device)
        if module is not None
        and (isinstance(leaf, Placeholder) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "OSU"))
        else leaf
        for leaf in sample.leaves
    ]
    return Sample(leaves, sample.structure).arguments()
