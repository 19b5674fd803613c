"""A graph in a terminal: one line a node, in the order of the forward, with its gradient at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.graphs.parts import BROKEN, LOST, Edge, Flow, Node

if TYPE_CHECKING:
    from pullback.graphs.graph import Graph

LONGEST = 120  # lines; a larger graph is folded first


def number(value: float) -> str:
    """Write a norm in a few characters."""
    return f"{value:.3g}"


def shape(edge: Edge) -> str:
    """Write shape and dtype as people say them: `float32[3, 4]`."""
    if edge.shape is None:
        return edge.dtype
    sizes = ", ".join("?" if n is None else str(n) for n in edge.shape)
    return f"{edge.dtype}[{sizes}]"


def size(count: int) -> str:
    """Write bytes."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count} B" if unit == "B" else f"{count:.3g} {unit}"
        count = count / 1024  # type: ignore[assignment]
    return f"{count:.3g} GiB"


def gradient(edge: Edge) -> str:
    """Say in a word or a number what comes back along an edge; nothing where nothing is expected."""
    if edge.state in ("still", "unmeasured"):
        return ""
    if edge.state in LOST or edge.state in BROKEN or edge.gradient is None:
        return {"none": "None", "zero": "0", "nan": "NaN", "inf": "inf"}.get(edge.state, "")
    return number(edge.gradient.norm)


def flow(found: Flow | None) -> str:
    """Say in a word or a number what a gradient is."""
    if found is None:
        return "None"
    return {"zero": "0", "nan": "NaN", "inf": "inf"}.get(found.state) or number(found.norm)


def label(node: Node) -> str:
    """Name a node, with what is written on it beside its name."""
    if node.rule is not None:
        return f"{node.name} [{node.rule.intent}]"
    if node.kind == "folded":
        return f"{node.name} ({operations(node.inside)})"
    return node.name


def operations(count: int) -> str:
    """Count operations in words."""
    return f"{count} operation{'' if count == 1 else 's'}"


def kept(node: Node) -> str:
    """Say what a node keeps for the backward; nothing if that is nothing, or not known."""
    return f"keeps {size(node.kept)}" if node.kept else ""


def written(graph: Graph) -> str:
    """Write a graph."""
    whole = graph.fold(LONGEST) if len(graph.nodes) > LONGEST else graph
    counted = sum(node.inside or node.kind == "operation" for node in whole.nodes)
    lines = [f"{graph.title} on {graph.host}: {operations(counted)}"]
    names = {node.id: f"{node.id}" for node in whole.nodes}
    for node in whole.nodes:
        before = [e for e in whole.edges if e.target == node.id]
        after = [e for e in whole.edges if e.source == node.id]
        parts = [f"{names[node.id]:>4}  {label(node)}"]
        if before:
            parts.append("← " + ", ".join(_from(e, names) for e in before))
        parts += [text for text in (shape(after[0]) if after else "", kept(node), node.location) if text]
        if node.is_source and any(e.state != "unmeasured" for e in after):
            parts.append(f"gradient {flow(node.gradient)}")
        lines.append("  ".join(parts))
    return "\n".join([*lines, *told(graph)])


def told(graph: Graph) -> list[str]:
    """Say what a reader must know beside the picture."""
    found = [graph.problem] if graph.problem else []
    if graph.culprit is not None:
        found.append(f"first culprit: {graph.culprit.says}")
    return [*found, *graph.notes]


def _from(edge: Edge, names: dict[int, str]) -> str:
    back = gradient(edge)
    return f"{names[edge.source]} (∂ {back})" if back else names[edge.source]
