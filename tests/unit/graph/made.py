"""Graphs made by hand."""

from pullback.graphs.culprit import culprit
from pullback.graphs.graph import Graph
from pullback.graphs.parts import Edge, Flow, Mark, Node

FINE = Flow(3, 1.5, -1.0, 1.0)
NAN = Flow(3, float("nan"), -1.0, 1.0, nan=1)


def small():
    """Draw x → exp → rule → output, with NaN from exp on."""
    nodes = (
        Node(0, "input", "x", "input", gradient=NAN),
        Node(1, "exp", "exp", does="exp", scope=("block",), location="a.py:3"),
        Node(2, "f", "f", rule=Mark("pullback", "surrogate", "like g"), kept=2048),
        Node(3, "stop", "stop", does="stop"),
        Node(4, "output", "output", "output"),
    )
    edges = (
        Edge(0, 1, (3,), "float32", "nan", FINE, NAN),
        Edge(1, 2, (3,), "float32", "flows", FINE, FINE),
        Edge(0, 3, (3,), "float32", "none", FINE),
        Edge(3, 4, (3,), "float32", "flows", FINE, FINE),
        Edge(2, 4, (None, 3), "float32", "zero", FINE, Flow(3, 0.0, 0.0, 0.0, zero=3)),
    )
    return Graph("f", "torch", nodes, edges, culprit(nodes, edges))


def chain(count, scope=lambda i: (), name=lambda i: "op"):
    """Draw a chain."""
    nodes = [Node(0, "input", "x", "input", gradient=FINE)]
    nodes += [Node(i, name(i), name(i), scope=scope(i), kept=4) for i in range(1, count + 1)]
    nodes.append(Node(count + 1, "output", "output", "output"))
    edges = tuple(Edge(i, i + 1, (3,), "float32", "flows", FINE, FINE) for i in range(count + 1))
    return Graph("chain", "jax", tuple(nodes), edges)


def ladder(count):
    """Draw a graph with branches and long lines."""
    nodes = [Node(0, "input", "x", "input", gradient=FINE)]
    nodes += [Node(i, f"operation_{i}", f"operation_{i}") for i in range(1, count)]
    nodes.append(Node(count, "output", "output", "output"))
    pairs = {(i // 2, i) for i in range(1, count)} | {(i, count) for i in range(count // 2, count)}
    pairs |= {(0, count - 1), (1, count - 2)}
    edges = tuple(Edge(a, b, (128, 64), "bfloat16", "flows", FINE, FINE) for a, b in sorted(pairs))
    return Graph("ladder", "jax", tuple(nodes), edges)
