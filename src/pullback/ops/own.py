"""Rules in whose place a host runs its own operation, as it differentiates it itself.

A rule is there for a gradient that is more right, or keeps less. Where a framework's own operation is as
right and keeps as little, a rule around it is only slower. Which these are, each host says in its `fused`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from pullback.plan import Plan
from pullback.typed import DefinedFunction, P, Y


def own(call: Callable[..., Any]) -> Callable[[DefinedFunction[P, Y]], DefinedFunction[P, Y]]:
    """Have a host run its own operation in the place of a rule, where it offers one.

    `call` takes that operation and all arguments of the rule, in their order. It refuses what the rule does,
    and gives None where the operation is not for them.
    """

    def decorated(function: DefinedFunction[P, Y]) -> DefinedFunction[P, Y]:
        name = function.rule.name

        def run(made: Plan, tensors: Sequence[Any]) -> Any:
            host, fused = made.host, made.host.fused.get(name)
            if fused is None or any(slot.tree is not None for slot in made.slots):
                return None
            operation = fused.own
            given = [(slot.places[0], slot.leaves[0]) for slot in made.slots]

            def shortly(tensors: Sequence[Any]) -> Any:
                if host.bypassed is not None or not host.ready(tensors):
                    return None
                return call(operation, *[leaf if place is None else tensors[place] for place, leaf in given])

            if made.flat:
                made.rule.shortcuts[made.count, type(tensors[0])] = shortly
            return shortly(tensors)

        function.rule = dataclasses.replace(function.rule, own=run)
        return function

    return decorated
