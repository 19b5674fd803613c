"""A graph as Mermaid: text, drawn by pages that know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.graphs import text
from pullback.graphs.parts import BROKEN, LOST, Node

if TYPE_CHECKING:
    from pullback.graphs.graph import Graph

_CLASSES = [
    "classDef exact stroke:#1a7f4b,stroke-width:2px",
    "classDef surrogate stroke:#8250df,stroke-width:2px",
    "classDef differs stroke:#b35900,stroke-width:2px",
    "classDef culprit stroke:#c5221f,color:#c5221f,stroke-width:3px",
]


def mermaid(graph: Graph) -> str:
    """Write a graph in Mermaid."""
    lines = ["flowchart TD", *(f"    {line}" for line in _CLASSES)]
    culprit = None if graph.culprit is None else graph.culprit.node
    for node in graph.nodes:
        mark = "culprit" if node.id == culprit else "" if node.rule is None else node.rule.intent
        lines.append(f"    n{node.id}{_box(node)}{f':::{mark}' if mark else ''}")
    red = []
    for place, edge in enumerate(graph.edges):
        back = text.gradient(edge)
        label = escaped("<br>".join(filter(None, (text.shape(edge), f"∂ {back}" if back else ""))))
        arrow = "-.->" if edge.state in ("none", "still") else "-->"
        lines.append(f"    n{edge.source} {arrow}{f'|{label}|' if label else ''} n{edge.target}")
        if edge.state in LOST or edge.state in BROKEN:
            red.append(str(place))
    if red:
        lines.append(f"    linkStyle {','.join(red)} stroke:#c5221f")
    return "\n".join(lines) + "\n"


def _box(node: Node) -> str:
    label = escaped("<br>".join(filter(None, (text.label(node), text.kept(node)))))
    return f"([{label}])" if node.kind not in ("operation", "folded") else f"[{label}]"


def escaped(words: str) -> str:
    """Write words so that Mermaid takes none of them for its own."""
    for sign, name in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        words = words.replace(sign, name)
    return '"' + words.replace("#lt;br#gt;", "<br>") + '"'
