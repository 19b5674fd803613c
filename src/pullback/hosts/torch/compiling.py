"""`torch.compile`: a rule is one call in the graph that Dynamo reads, and ordinary operations below it.

Dynamo does not look into the call. The stages after it do: they run the rule on stand-in tensors, forward and
backward, and see nothing but the operations of the body and of `grad`. So a compiled step has no trace of
pullback in it. Imported while something is being compiled, and not before: Dynamo is slow to load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch._dynamo
from torch.utils._pytree import register_pytree_node

from pullback.hosts.torch.modules import snapshot
from pullback.replace.finite import Counter

_mark = getattr(torch._dynamo, "nonstrict_trace", torch._dynamo.allow_in_graph)


def marked(function: Callable[..., Any], functions: Sequence[Any]) -> Callable[..., Any]:
    """Give the function that Dynamo takes for a single call; functions among the arguments are part of it."""

    def rule(places: list[bool], args: list[Any], kwargs: dict[str, Any]) -> Any:
        rest = iter(functions)
        given = [next(rest) if place else value for place, value in zip(places, [*args, *kwargs.values()])]
        # Stand-ins are in the places of the parameters during this call only, and `grad` runs later.
        given = [snapshot(value) if isinstance(value, torch.nn.Module) else value for value in given]
        return function(*given[: len(args)], **dict(zip(kwargs, given[len(args) :])))

    single: Callable[..., Any] = _mark(rule)
    return single


register_pytree_node(Counter, lambda counter: ([counter.variable], None), lambda parts, _: Counter(*parts))
