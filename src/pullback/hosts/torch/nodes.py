"""Nodes of the graph that autograd records: named after the user's function, and gone through.

Graph printers, anomaly mode and profilers show the class of a node. So each name has a class of its own, made
when it is first met; a factory that makes a rule in every call makes one class.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback.hosts.torch import private

Record = Callable[..., Any]


def named_nodes(kind: Any) -> Callable[[str], Record]:
    """Give what finds the `apply` of a kind of node, by the name of an operation."""

    @functools.lru_cache(maxsize=1024)
    def by_name(name: str) -> Record:
        node = type(kind)(name, (kind,), {"__module__": kind.__module__, "__doc__": kind.__doc__})
        # `Function.apply` also serves transforms, which do not come here.
        return super(private.SingleLevelFunction, node).apply

    return by_name


def behind(tensors: Sequence[Any]) -> Iterator[Any]:
    """Go through the nodes that tensors were computed by, each once."""
    waiting, seen = [tensor.grad_fn for tensor in tensors], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting += [after for after, _ in node.next_functions]
