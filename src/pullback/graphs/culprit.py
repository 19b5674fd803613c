"""The first operation, going backward, that spoils a gradient: it is handed a good one, and gives a bad one.

NaN and infinity are named wherever they begin. A gradient that is zero or missing is named only if an input
or a variable has nothing else: a `stop_gradient` beside another path is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.graphs.order import ahead, beside, reached
from pullback.graphs.parts import BROKEN, Culprit, Edge, Node, State


def culprit(nodes: Sequence[Node], edges: Sequence[Edge]) -> Culprit | None:
    """Find the operation to look at first."""
    after, before = beside(edges)
    for node in reversed(nodes):  # nodes stand in the order in which they ran
        arriving = [e.state for e in after.get(node.id, ())]
        if node.kind == "operation" and not any(state in BROKEN for state in arriving):
            spoiled = next((e for e in before.get(node.id, ()) if e.state in BROKEN), None)
            if spoiled is not None:
                return Culprit(node.id, spoiled.state, said(node, spoiled.state))
    poor = {n.id for n in nodes if n.is_source and nothing(n, after.get(n.id, ()))}
    after = expected(after)
    behind = reached(poor, ahead(after))
    for node in reversed(nodes):
        if node.id in behind and node.kind in ("operation", "captured"):
            lost = loses(after.get(node.id, ()), before.get(node.id, ()))
            if lost is not None:
                return Culprit(node.id, lost, said(node, lost))
    return None


def nothing(node: Node, after: Sequence[Edge]) -> bool:
    """Tell whether a source was measured, and has no gradient, or zeros."""
    if not after or all(e.state in ("unmeasured", "still") for e in after):
        return False
    return node.gradient is None or node.gradient.state == "zero"


def expected(after: dict[int, list[Edge]]) -> dict[int, list[Edge]]:
    """Leave out what is only compared: no gradient comes back from a truth value."""
    decides = {node for node, edges in after.items() if all(e.dtype.startswith("bool") for e in edges)}
    return {node: [e for e in edges if e.target not in decides] for node, edges in after.items()}


def loses(after: Sequence[Edge], before: Sequence[Edge]) -> State | None:
    """Say what an operation makes of a gradient that comes to it: nothing, zeros, or None where it passes."""
    arrives = not after or any(e.state not in ("none", "zero") for e in after)
    measured = [e.state for e in after if e.state != "still"]
    zeros = bool(measured) and all(state == "zero" for state in measured)
    if arrives and not zeros and any(e.state == "none" for e in before):
        return "none"
    if arrives and not zeros and before and all(e.state in ("zero", "still") for e in before):
        return "zero" if any(e.state == "zero" for e in before) else None
    return None


_WORDS = {
    "nan": "what comes to it is finite, and what it passes on has NaN",
    "inf": "what comes to it is finite, and what it passes on is infinite",
    "zero": "what comes to it is not zero, and what it passes on is",
    "none": "it passes no gradient on",
}


def said(node: Node, state: State) -> str:
    """Name an operation and what it does to the gradient."""
    at = f" ({node.location})" if node.location else ""
    return f"{node.name}{at}: {_WORDS[state]}"
