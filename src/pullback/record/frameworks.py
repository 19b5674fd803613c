"""The leaves of a call, copied by the framework that they belong to.

One that belongs to none is a static and is left as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from pullback import hosts, tree
from pullback.hosts.keras import is_weight
from pullback.record.asking import held, ties
from pullback.record.framework import Framework
from pullback.record.sample import Placeholder, Sample, Spec, described
from pullback.view.definition import inner
from pullback.view.native import Given

FRAMEWORKS: dict[str, Framework] = {
    name: module.FRAMEWORK for name in hosts.SUPPORTED if (module := hosts.part("record", name)) is not None
}


def _owner(leaf: Any) -> str:
    """Name the framework of a leaf."""
    plain = (bool, int, float, complex, str, bytes, type(None))
    if type(leaf) in plain or isinstance(leaf, (np.ndarray, np.generic)):
        return ""
    return next((name for name, framework in FRAMEWORKS.items() if framework.owns(leaf)), "")


def _tensor(leaf: Any) -> Any:
    """Give the tensor inside a variable of Keras, whose backend may be any."""
    return leaf.value if is_weight(type(leaf)) else leaf


def freeze(leaf: Any) -> Any:
    """Copy a tensor to an array, or its shape and dtype to a spec; leave anything else as it is."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return np.array(leaf) if leaf.dtype.kind not in "OSU" else leaf
    leaf = _tensor(leaf)
    owner = _owner(leaf)
    return FRAMEWORKS[owner].freeze(leaf) if owner else leaf


def spec(leaf: Any) -> Any:
    """Take the shape and dtype of a tensor; leave anything else as it is."""
    if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind not in "OSU":
        return Spec(leaf.shape, leaf.dtype.name)
    leaf = _tensor(leaf)
    owner = _owner(leaf)
    return FRAMEWORKS[owner].spec(leaf) if owner else leaf


def told(leaf: Any) -> str | None:
    """Say in words what tells a tensor from others; None for what is none."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        words = described(Spec(leaf.shape, leaf.dtype.name))
        return f"{words} {leaf.item()!r}" if leaf.size == 1 else words
    if is_weight(type(leaf)):
        return described(spec(leaf))
    owner = _owner(leaf)
    return FRAMEWORKS[owner].told(leaf) if owner else None


def of(leaves: Iterable[Any]) -> tuple[str, str]:
    """Name the framework and the device of the first tensor among leaves."""
    for leaf in map(_tensor, leaves):
        if owner := _owner(leaf):
            return owner, FRAMEWORKS[owner].device(leaf)
    return "", ""


def sample(given: Given, framework: str = "", *, copy: Callable[[Any], Any] = freeze) -> Sample:
    """Keep a call: its leaves copied, their framework and device; `framework` is for one without tensors."""
    leaves, structure = tree.flatten(given)
    owner, device = of(leaves)
    still = FRAMEWORKS[owner].still(leaves) if owner else frozenset()
    tied = ties(leaves, structure)
    kept = held(leaves, structure, FRAMEWORKS.get(owner))
    return Sample([copy(leaf) for leaf in leaves], structure, owner or framework, device, still, tied, kept)


def naming(function: Any) -> str:
    """Choose the framework for a function that was not seen at work.

    It is the one that the function names, else that its file imports, else the first that is there: a rule
    which names none runs on any.
    """
    there = [name for name in hosts.SUPPORTED if name in sys.modules]
    found = hosts.naming([function])
    if found is not None:
        return hosts.framework_of(found)
    globals_ = getattr(inner(function), "__globals__", {})
    roots = {value.__name__.partition(".")[0] for value in globals_.values() if isinstance(value, ModuleType)}
    return next((name for name in there if name in roots), there[0] if there else "")


def thaw(sample: Sample) -> Given:
    """Give the arguments of a call, with tensors of the framework that it was made in."""
    return Sample(thawed(sample), sample.structure).arguments()


def thawed(sample: Sample) -> list[Any]:
    """Give the leaves of a call, with tensors of the framework that it was made in."""
    framework = FRAMEWORKS.get(sample.framework)
    leaves = [
        framework.thaw(leaf, sample.device)
        if framework is not None
        and (isinstance(leaf, Placeholder) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "OSU"))
        else leaf
        for leaf in sample.leaves
    ]
    for inside, direct in sample.tied.items():
        leaves[inside] = leaves[direct]
    return leaves
