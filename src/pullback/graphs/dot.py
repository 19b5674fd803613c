"""A graph as Graphviz DOT: text, for who has Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.graphs import text
from pullback.graphs.parts import BROKEN, LOST, Edge, Node

if TYPE_CHECKING:
    from pullback.graphs.graph import Graph

_SHAPES = {"input": "ellipse", "variable": "ellipse", "captured": "ellipse", "output": "ellipse"}
_COLOURS = {"exact": "#1a7f4b", "surrogate": "#8250df", "differs": "#b35900"}
RED = "#c5221f"


def dot(graph: Graph) -> str:
    """Write a graph in DOT."""
    lines = [
        "digraph {",
        "  rankdir=TB;",
        '  node [shape=box, style=rounded, fontname="sans-serif", fontsize=11];',
        '  edge [fontname="sans-serif", fontsize=9, color="#8a8f98"];',
        f"  label={quoted(chr(10).join([graph.title, *text.told(graph)]))};",
    ]
    lines += [f"  n{node.id} [{_node(graph, node)}];" for node in graph.nodes]
    lines += [f"  n{edge.source} -> n{edge.target} [{_edge(edge)}];" for edge in graph.edges]
    return "\n".join([*lines, "}"]) + "\n"


def quoted(words: str) -> str:
    """Write words as a string of DOT."""
    escaped = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _node(graph: Graph, node: Node) -> str:
    parts = [f"label={quoted(chr(10).join(filter(None, (text.label(node), text.kept(node)))))}"]
    if node.kind in _SHAPES:
        parts.append(f"shape={_SHAPES[node.kind]}")
    if node.rule is not None:
        parts.append(f'color="{_COLOURS[node.rule.intent]}", penwidth=2')
        parts.append(f"tooltip={quoted(f'{node.rule.maker}: {node.rule.says}')}")
    if graph.culprit is not None and graph.culprit.node == node.id:
        parts.append(f'color="{RED}", fontcolor="{RED}", penwidth=2')
    return ", ".join(parts)


def _edge(edge: Edge) -> str:
    back = text.gradient(edge)
    parts = [f"label={quoted(chr(10).join(filter(None, (text.shape(edge), f'∂ {back}' if back else ''))))}"]
    if edge.state in LOST or edge.state in BROKEN:
        parts.append(f'color="{RED}", fontcolor="{RED}"')
    if edge.state in ("none", "still"):
        parts.append("style=dashed")
    return ", ".join(parts)
