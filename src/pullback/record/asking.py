"""What a program asked of a call: of which arguments a gradient, and which tensors are one and the same.

A parameter that is passed beside the module, the function or the object that holds it is one tensor: what
moves the one moves the other.
A sparse tensor is asked by the numbers that it holds; where it has zeros, there is nothing to move.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback import tree
from pullback.record.framework import Framework
from pullback.record.holding import Undo, exchanged, may_hold
from pullback.record.sample import Sample
from pullback.view.arguments import Asked


def ties(leaves: Sequence[Any], structure: tree.Tree | None) -> dict[int, int]:
    """Find the leaves inside a module that are arguments of the call themselves."""
    direct = {id(leaves[index]): index for index in _direct(structure).values()}
    inside = [i for i, within in enumerate(_within(structure)) if within]
    return {i: direct[id(leaves[i])] for i in inside if id(leaves[i]) in direct}


def held(leaves: Sequence[Any], structure: tree.Tree | None, owner: Framework | None) -> dict[int, Any]:
    """Remember the tensors of a call that has a function or an object among its arguments: that may hold
    them, too.
    """
    direct = _direct(structure).values()
    if owner is None or not owner.flows_inside:
        return {}
    tensors = [i for i in direct if owner.owns(leaves[i])]
    may = any(may_hold(leaves[i]) for i in direct if i not in tensors)
    return {i: weakref.ref(leaves[i]) for i in tensors} if may else {}


def _direct(structure: tree.Tree | None) -> dict[int, int]:
    """Give the leaf of each positional argument that is one."""
    found: dict[int, int] = {}
    count = 0
    for place, child in enumerate(structure.children[0].children if structure is not None else ()):  # type: ignore[union-attr]
        if child is None:
            found[place] = count
        count += len(_within(child))
    return found


def _within(structure: tree.Tree | None, inside: bool = False) -> list[bool]:
    """Tell of each leaf whether it stands inside what only a host can put together."""
    if structure is None:
        return [inside]
    inside = inside or structure.build_one is not None
    return [within for child in structure.children for within in _within(child, inside)]


@contextlib.contextmanager
def call_of(
    sample: Sample, framework: Framework | None, leaves: list[Any]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any], Asked]]:
    """Give the arguments of a call again, and what is asked of it; what holds a tensor has it again after."""
    direct = _direct(sample.structure)
    for i, inside in enumerate(_within(sample.structure)):
        if inside and i not in sample.still and framework is not None and framework.owns(leaves[i]):
            leaves[i] = framework.training(leaves[i])
    packs: dict[int, Callable[[Any], Any]] = {}
    given = list(leaves)
    for place, index in direct.items():
        found = framework.packed(leaves[index]) if framework and index not in sample.still else None
        if found is not None:
            given[index], packs[place] = found
    args, kwargs = tree.unflatten(sample.structure, given)
    undo: Undo = []

    def undone() -> None:
        while undo:
            undo.pop()()

    def built(values: list[Any]) -> list[Any]:
        now = [packs[place](value) if place in packs else value for place, value in enumerate(values)]
        moved = list(leaves)
        for place, index in direct.items():
            moved[index] = now[place]
        for inside, other in sample.tied.items():
            moved[inside] = moved[other]
        undone()
        others = [(was, moved[i]) for i, known in sample.held.items() if (was := known()) is not None]
        for index in direct.values():
            if index not in sample.held:
                moved[index] = exchanged(moved[index], others, undo)
        return list(tree.unflatten(sample.structure, moved)[0])

    still = tuple(leaves[index] for index in sample.still)
    try:
        yield args, kwargs, Asked(still, built if packs or sample.tied or sample.held else None)
    finally:
        undone()
