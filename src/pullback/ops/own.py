"""Rules in whose place a host runs its own operation, as it differentiates it itself.

A rule is there for a gradient that is more right, or keeps less. Where a framework's own operation is as
right and keeps as little, a rule around it is only slower. Which these are, each host says in its `fused`.
A call is settled once for its shapes and dtypes: code of Python that runs between two large kernels finds the
caches of the processor cold, and costs several times what it does by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from pullback.plan import Plan
from pullback.typed import DefinedFunction, P, Y

_MOST = 64  # shapes that are remembered of a call


def own(settle: Callable[..., Any]) -> Callable[[DefinedFunction[P, Y]], DefinedFunction[P, Y]]:
    """Have a host run its own operation in the place of a rule, where it offers one.

    `settle` takes what the host offers and all arguments of the rule, in their order. It refuses what the
    rule does, and gives what runs such calls: a function of the same arguments, which may decline by None
    where it is called; or None where there is none for these shapes and dtypes.
    """

    def decorated(function: DefinedFunction[P, Y]) -> DefinedFunction[P, Y]:
        name = function.rule.name

        def run(made: Plan, tensors: Sequence[Any]) -> Any:
            shortly = made.memo.get(run)
            if shortly is None:
                shortly = made.memo[run] = _shortly(made, name, settle)
                if made.flat and shortly is not _declined:
                    made.rule.shortcuts[made.count, type(tensors[0])] = shortly
            return shortly(tensors)

        function.rule = dataclasses.replace(function.rule, own=run)
        return function

    return decorated


def _shortly(made: Plan, name: str, settle: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    """Give what runs the calls of a plan."""
    host, fused = made.host, made.host.fused.get(name)
    if fused is None or any(slot.tree is not None for slot in made.slots):
        return _declined
    offered = fused.own
    slots = [(slot.places[0], slot.leaves[0]) for slot in made.slots]
    settled: dict[Any, Callable[..., Any]] = {}

    def shortly(tensors: Sequence[Any]) -> Any:
        if host.bypassed is not None or not host.ready(tensors):
            return None
        given = [leaf if place is None else tensors[place] for place, leaf in slots]
        form = tuple([host.outline(tensor) for tensor in tensors])
        operation = settled.get(form)
        if operation is None:
            operation = settle(offered, *given) or _declined
            if len(settled) >= _MOST:
                settled.clear()
            settled[form] = operation
        return operation(*given)

    return shortly


def _declined(*args: Any) -> None:
    """Leave a call to the rule."""
