"""Folding: fewer boxes, by module, layer and scope, until a graph fits.

Deep scopes go first. Then neighbours that share the beginning of their names, as `block_1_conv` and
`block_1_bn` do; then neighbours as they stand. Neighbours are those that ran one after the other, so no
circle is made. What is inside a box is counted, its worst gradient is shown, and so are its rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pullback.graphs.order import ordered
from pullback.graphs.parts import Edge, Mark, Node, State

if TYPE_CHECKING:
    from pullback.graphs.graph import Graph

SCREEN = 27  # boxes that are legible on one screen
_WORST: tuple[State, ...] = ("nan", "inf", "flows", "zero", "none", "unmeasured", "still")
_INTENTS = ("differs", "surrogate", "exact")


Groups = list[int]  # of each node, the number of its group


def folded(graph: Graph, limit: int) -> Graph:
    """Fold a graph until at most so many nodes are left."""
    nodes = graph.nodes
    if len(nodes) <= limit:
        return graph
    scopes = _scopes(graph)
    groups: Groups = list(range(len(nodes)))
    for depth in range(max(map(len, scopes)), 0, -1):
        groups = _drawn_in(graph, _by_scope(nodes, scopes, depth))
        if len(set(groups)) <= limit:
            wider = _drawn_in(graph, _by_scope(nodes, scopes, depth - 1)) if depth > 1 else None
            if wider is None or len(set(wider)) < len(set(groups)):
                return _drawn(graph, groups, [scope[:depth] for scope in scopes])
    scopes = [scope[:1] for scope in scopes]
    runs = _runs(graph, _drawn_in(graph, groups))
    parts = [_parts(scopes[run[-1]][0] if scopes[run[-1]] else nodes[run[-1]].name) for run in runs]
    ends = [nodes[run[0]].kind in ("input", "output") for run in runs]
    best = runs
    for count in range(max(map(len, parts)), 0, -1):
        joined = _joined(runs, [[] if end else words[:count] for words, end in zip(parts, ends)])
        if limit / 2 <= len(joined) <= limit:
            return _drawn(graph, _of(joined, len(nodes)), scopes)
        best = joined if len(joined) > limit else best
    return _drawn(graph, _of(_evenly(nodes, best, limit), len(nodes)), scopes)


# ── groups ───────────────────────────────────────────────────────────────────────────────────────────────


def _scopes(graph: Graph) -> list[tuple[str, ...]]:
    """Give the scope of every node, without what all of them share."""
    inner = [node.scope for node in graph.nodes if node.kind == "operation" and node.scope]
    shared = len(_shared(inner))
    return [node.scope[shared:] for node in graph.nodes]


def _by_scope(nodes: Sequence[Node], scopes: Sequence[tuple[str, ...]], depth: int) -> Groups:
    """Put the nodes of one scope together."""
    first: dict[tuple[str, ...], int] = {}
    return [
        first.setdefault(scope[:depth], node.id)
        if scope and node.kind not in ("input", "output")
        else node.id
        for node, scope in zip(nodes, scopes)
    ]


def _drawn_in(graph: Graph, groups: Groups) -> Groups:
    """Put variables to what uses them, where that is one group."""
    users: dict[int, set[int]] = {}
    for edge in graph.edges:
        users.setdefault(edge.source, set()).add(groups[edge.target])
    alone = Counter(groups)
    return [
        next(iter(users[node.id]))
        if node.kind in ("variable", "captured") and alone[group] == 1 and len(users.get(node.id, ())) == 1
        else group
        for node, group in zip(graph.nodes, groups)
    ]


def _runs(graph: Graph, groups: Groups) -> list[list[int]]:
    """List the members of the groups, in the order in which those run."""
    members: dict[int, list[int]] = {}
    for node, group in enumerate(groups):
        members.setdefault(group, []).append(node)
    number = {group: i for i, group in enumerate(members)}
    pairs = {(number[groups[e.source]], number[groups[e.target]]) for e in graph.edges}
    listed = list(members.values())
    return [listed[i] for i in ordered(len(listed), pairs)]


def _joined(runs: Sequence[list[int]], keys: Sequence[list[str]]) -> list[list[int]]:
    """Join neighbours of the same key."""
    found: list[list[int]] = []
    last: list[str] = []
    for run, key in zip(runs, keys):
        if found and key and key == last:
            found[-1] += run
        else:
            found.append(list(run))
        last = key
    return found


def _evenly(nodes: Sequence[Node], runs: Sequence[list[int]], limit: int) -> list[list[int]]:
    """Join neighbours until at most so many are left, with about as many operations in each."""
    apart = [run for run in runs if nodes[run[0]].kind in ("input", "output")]
    apart = apart if len(apart) < limit / 2 else []
    inside = [run for run in runs if run not in apart]
    share = sum(map(len, inside)) / (limit - len(apart))
    found: list[list[int]] = []
    done = 0
    for run in inside:
        if found and int(done / share) < len(found):
            found[-1] += run
        else:
            found.append(list(run))
        done += len(run)
    return [*apart, *found]


def _of(runs: Sequence[list[int]], count: int) -> Groups:
    found = [0] * count
    for number, run in enumerate(runs):
        for node in run:
            found[node] = number
    return found


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────


def _shared(words: Sequence[Sequence[str]]) -> Sequence[str]:
    """Give the beginning that all of these share."""
    if not words:
        return ()
    first, last = min(map(list, words)), max(map(list, words))  # all others are between these two
    count = next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
    return first[:count]


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"[_.]", name) if part]


def _name(nodes: Sequence[Node], scopes: Sequence[tuple[str, ...]], group: Sequence[int]) -> str:
    """Name a group: by what its nodes share, or by its first and last."""
    if len(group) == 1:
        return nodes[group[0]].name
    inside = [scopes[i] for i in group if nodes[i].kind == "operation"]
    shared = _shared(inside)
    if shared:
        return shared[-1]
    words = [scopes[i][0] if scopes[i] else nodes[i].name for i in group if nodes[i].kind == "operation"]
    words = words or [nodes[i].name for i in group]
    common = _shared([_parts(word) for word in words])
    if len(common) > 1 or (common and words[0] == words[-1]):
        return "_".join(common)
    return f"{words[0]} … {words[-1]}"


# ── the folded graph ─────────────────────────────────────────────────────────────────────────────────────


def _drawn(graph: Graph, groups: Groups, scopes: Sequence[tuple[str, ...]]) -> Graph:
    runs = _runs(graph, groups)
    number = _of(runs, len(groups))
    nodes = tuple(_box(graph, scopes, run, i) for i, run in enumerate(runs))
    merged: dict[tuple[int, int], Edge] = {}
    for edge in graph.edges:
        key = number[edge.source], number[edge.target]
        if key[0] != key[1]:
            new = replace(edge, source=key[0], target=key[1])
            merged[key] = _both(merged[key], new) if key in merged else new
    culprit = graph.culprit
    if culprit is not None:
        culprit = replace(culprit, node=number[culprit.node])
    hidden = f"{len(graph.nodes)} nodes are folded into {len(nodes)}."
    return replace(
        graph, nodes=nodes, edges=tuple(merged.values()), culprit=culprit, notes=(*graph.notes, hidden)
    )


def _box(graph: Graph, scopes: Sequence[tuple[str, ...]], group: Sequence[int], new: int) -> Node:
    nodes = [graph.nodes[i] for i in group]
    if len(nodes) == 1:
        return replace(nodes[0], id=new)
    rules: list[Mark] = sorted(
        (n.rule for n in nodes if n.rule is not None), key=lambda rule: _INTENTS.index(rule.intent)
    )
    counted = sum(n.inside or n.kind == "operation" for n in nodes)
    sizes = [n.kept for n in nodes if n.kept is not None]
    first = next((n.gradient for n in reversed(nodes) if n.kind == "operation" and n.gradient), None)
    return Node(
        new, "folded", _name(graph.nodes, scopes, group), "folded", rule=rules[0] if rules else None,
        kept=sum(sizes) if sizes else None, gradient=first, inside=counted,
    )  # fmt: skip


def _both(a: Edge, b: Edge) -> Edge:
    """Draw two edges as one: the worse is shown."""
    worse = min(a, b, key=lambda edge: _WORST.index(edge.state))
    return replace(worse, count=a.count + b.count)
