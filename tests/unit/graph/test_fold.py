"""Folding: fewer boxes, and nothing lost but detail."""

import pytest
from made import NAN, chain, ladder

from pullback.graphs.culprit import culprit
from pullback.graphs.graph import Graph
from pullback.graphs.parts import Edge, Mark, Node


def layers(i):
    block, step = divmod(i - 1, 3)
    return ("model", f"block_{block}_{('conv', 'bn', 'relu')[step]}")


def test_a_graph_that_fits_is_left_as_it_is():
    graph = chain(20)
    assert graph.fold() is graph


def test_scopes_are_folded_first():
    graph = chain(60, scope=lambda i: ("model", f"layer{(i - 1) // 6}", "inner")).fold()
    assert [n.name for n in graph.nodes[1:-1]] == [f"layer{i}" for i in range(10)]
    assert {(n.kind, n.inside, n.kept) for n in graph.nodes[1:-1]} == {("folded", 6, 24)}
    assert graph.notes[-1] == "62 nodes are folded into 12."


def test_layers_that_share_the_beginning_of_their_names_are_folded_together():
    graph = chain(60, scope=layers).fold()
    assert [n.name for n in graph.nodes[1:-1]] == [f"block_{i}" for i in range(20)]


MANY = {"ops": chain(10_000), "layers": chain(3000, layers), "ladder": ladder(1000)}


@pytest.mark.parametrize("graph", MANY.values(), ids=list(MANY))
def test_many_nodes_become_a_few(graph):
    folded = graph.fold()
    assert 9 <= len(folded.nodes) <= 27
    assert sum(n.inside or n.kind == "operation" for n in folded.nodes) == sum(
        n.kind == "operation" for n in graph.nodes
    )
    assert all(e.source < e.target for e in folded.edges), "no circle is made"


def test_the_worst_gradient_the_rules_and_the_culprit_are_kept():
    graph = chain(60, scope=lambda i: (f"layer{(i - 1) // 6}",))
    nodes, edges = list(graph.nodes), list(graph.edges)
    nodes[8] = Node(8, "f", "f", scope=("layer1",), rule=Mark("pullback", "exact", ""))
    nodes[9] = Node(9, "g", "g", scope=("layer1",), rule=Mark("pullback", "differs", ""))
    for i in range(7):
        edges[i] = Edge(i, i + 1, (3,), "float32", "nan", gradient=NAN)
    folded = Graph("f", "jax", tuple(nodes), tuple(edges), culprit(nodes, edges)).fold()
    assert folded.nodes[2].rule.intent == "differs"
    assert folded.nodes[folded.culprit.node].name == "layer1"
    assert [e.state for e in folded.edges[:3]] == ["nan", "nan", "flows"]


def test_variables_go_to_the_layer_that_uses_them():
    graph = chain(60, scope=lambda i: (f"layer{(i - 1) // 6}",))
    weights = tuple(Node(62 + i, "variable", f"w{i}", "variable") for i in range(10))
    edges = tuple(Edge(62 + i, 6 * i + 1, (3,), "float32", "flows") for i in range(10))
    folded = Graph("f", "torch", graph.nodes + weights, graph.edges + edges).fold()
    assert [n.name for n in folded.nodes] == ["x", *(f"layer{i}" for i in range(10)), "output"]
