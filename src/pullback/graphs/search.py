"""The search for a loss: from the result backward, the first operation that passes no gradient on."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from pullback.graphs import bodies, losses
from pullback.graphs.culprit import expected, loses
from pullback.graphs.graph import Graph
from pullback.graphs.order import ahead, behind, beside, reached
from pullback.graphs.parts import BROKEN, Edge, Node

ENDS = {"leave": "numpy", "store": "stored"}  # what ends the way of a value, and the kind of loss that is


class Found(NamedTuple):
    """Hold a loss: its kind, the operation, and the loop or branch that it stands in."""

    kind: str
    node: Node
    within: Node | None = None
    before: Node | None = None  # where the value became infinite, if it is NaN from the operation on

    @property
    def name(self) -> str:
        """The operation in a sentence."""
        return _written("the", self.node)

    @property
    def drawn(self) -> Node:
        """The node of the graph."""
        return self.within or self.node

    def __str__(self) -> str:
        name = _written("a", self.node)
        if self.within is not None:
            name += f" in {_written('a', self.within)}"
        return f"{name} ({self.node.location})" if self.node.location else name


def _written(article: str, node: Node) -> str:
    """Name an operation; a statement of the user's is a thing, and has no name."""
    return f"{article} {node.name}" if node.name in ("loop", "branch") else node.name


class Search:
    """Look for the loss between one source and the outputs."""

    def __init__(self, graph: Graph, source: Node) -> None:
        self.graph, self.source = graph, source
        self.after, self.before = beside(graph.edges)
        self.targets, self.sources = ahead(self.after), behind(self.before)
        self.ahead = reached([source.id], self.targets)
        ends = [node.id for node in graph.nodes if node.kind == "output"]
        self.between = self.ahead & reached(ends, self.sources)  # on a path from the source to an output

    def steps(self) -> list[Node]:
        """List the operations of the paths, from the result backward."""
        return [n for n in reversed(self.graph.nodes) if n.id in self.between and n.kind == "operation"]

    def shares(self, node: Node) -> list[Edge]:
        """List the edges from an operation toward the source."""
        return [e for e in self.before.get(node.id, ()) if e.source in self.ahead]

    def broken(self) -> Found | None:
        """Find where NaN or infinity begins."""
        ends = [e for n in self.graph.nodes if n.kind == "output" for e in self.before.get(n.id, ())]
        spoils = any(e.value is None or e.value.nan or e.value.inf for e in ends)
        for node in self.graph.nodes if spoils else ():  # forward: where the value itself is spoiled
            if node.id in self.between and self._begins(node, "inf", "nan") and self._begins(node, "nan"):
                return Found("forward", node)
        found = self._pulled()
        if not spoils or (found is not None and self._begins(found.node, "inf", "nan")):
            return found
        spoiled = [n for n in self.graph.nodes if n.id in self.between and self._begins(n, "nan")]
        before = self._infinite(spoiled[0]) if spoiled else None
        return found if before is None else Found("forward after inf", spoiled[0], before=before)

    def _pulled(self) -> Found | None:
        """Find where a gradient that is finite becomes NaN or infinite, from the result backward."""
        for node in self.steps():
            arriving, shares = self.after.get(node.id, []), self.shares(node)
            if any(e.state in BROKEN for e in shares) and not any(e.state in BROKEN for e in arriving):
                later = reached([node.id], self.targets)
                selected = any(n.does == "where" for n in self.graph.nodes if n.id in later - {node.id})
                return Found(losses.of_broken(node, shares, arriving, selected), node)
        return None

    def _begins(self, node: Node, *fields: str) -> bool:
        """Tell whether values are NaN or infinite behind a node, and not before it."""

        def spoiled(edges: Sequence[Edge]) -> bool:
            return any(getattr(e.value, field) for e in edges if e.value for field in fields)

        return spoiled(self.after.get(node.id, ())) and not spoiled(self._read(node))

    def _read(self, node: Node) -> list[Edge]:
        """List what comes to an operation; where a value is not known, what that was computed from."""
        waiting, seen, found = [node.id], {node.id}, []
        while waiting:
            for edge in self.before.get(waiting.pop(), ()):
                if edge.value is not None:
                    found.append(edge)
                elif edge.source not in seen:
                    seen.add(edge.source)
                    waiting.append(edge.source)
        return found

    def _infinite(self, node: Node) -> Node | None:
        """Find where what comes to an operation became infinite."""
        behind = reached([node.id], self.sources)
        nodes = [n for n in self.graph.nodes if n.id in behind and n.id != node.id]
        return next((n for n in nodes if self._begins(n, "inf", "nan")), None)

    def lost(self) -> list[Found]:
        """Find where the gradient becomes nothing or zeros, from the result backward."""
        found = []
        wanted = expected(self.after)
        for node in self.steps():
            if self.after.get(node.id) and not wanted[node.id]:
                continue
            arriving, shares = wanted.get(node.id, []), self.shares(node)
            state = loses(arriving, shares)
            inside = self.inside(node, shares) if state in ("none", "zero") else []
            if inside:
                found += inside
            elif state == "none" and not any(e.state == "flows" for e in shares):
                found.append(Found(losses.of_none(node, shares, arriving, self.graph.host), node))
            elif state == "zero":
                operands = self.before.get(node.id, [])
                found.append(Found(losses.of_zero(node, shares, arriving, operands), node))
        if not found:  # comparisons and the like are not asked for a gradient, and give none
            for node in self.steps():
                floats = [e for e in self.shares(node) if not e.dtype.startswith(losses.INTEGERS)]
                integers = all(e.dtype.startswith(losses.INTEGERS) for e in self.after.get(node.id, ()))
                if floats and integers:
                    after = self.after.get(node.id, [])
                    found.append(Found(losses.of_none(node, floats, after, self.graph.host), node))
        return sorted(found, key=lambda loss: loss.kind == "stop")  # that is meant; what is beside it is not

    def inside(self, node: Node, shares: Sequence[Edge]) -> list[Found]:
        """Find where a loop or a condition loses it; what hands it a list of tensors is not measured."""
        arriving = self.after.get(node.id, ())
        ports = {e.port for e in arriving}
        found = [
            Found(kind, part, node) for part, kind in bodies.lost_in(node, {e.place for e in shares}, ports)
        ]
        if not found and arriving and all(e.dtype == "variant" for e in arriving):
            return [loss for e in arriving for loss in self.inside(self.graph.nodes[e.target], [e])]
        return found

    def left(self) -> Found | None:
        """Find where a value of the source leaves the framework or is stored, on no path to an output."""
        ends = [n for n in reversed(self.graph.nodes) if n.id in self.ahead and n.does in ENDS]
        return Found(ENDS[ends[0].does], ends[0]) if ends else None

    def path(self, through: Node | None) -> tuple[str, ...]:
        """Name the nodes from the result to the source, through an operation."""
        ends = [n.id for n in self.graph.nodes if n.kind == "output" and n.id in self.between]
        inside = self.between if ends else self.ahead
        starts = ends or ([through.id] if through is not None else [])
        if through is not None and starts != [through.id]:
            first = self._way(starts, through.id, inside)
            return tuple(self._named([*first, *self._way([through.id], self.source.id, inside)[1:]]))
        return tuple(self._named(self._way(starts, self.source.id, inside)))

    def _way(self, starts: Sequence[int], goal: int, inside: set[int]) -> list[int]:
        came: dict[int, int] = dict.fromkeys(starts, -1)
        waiting = deque(starts)
        while waiting and goal not in came:
            node = waiting.popleft()
            for edge in self.before.get(node, ()):
                if edge.source not in came and edge.source in inside:
                    came[edge.source] = node
                    waiting.append(edge.source)
        way, node = [], goal
        while node in came and node != -1:
            way.append(node)
            node = came[node]
        return way[::-1]

    def _named(self, way: Sequence[int]) -> list[str]:
        names = [self.graph.nodes[i].name for i in way]
        return names if len(names) <= 12 else [*names[:6], f"… {len(names) - 11} more …", *names[-5:]]
