"""What is lost inside of a loop or a branch: the operations there that no gradient passes.

A body is not measured: it ran many times, or it is one of several. So an operation in it is named only where
every way through the body leads to such a one, round after round.
"""

from __future__ import annotations

from collections.abc import Collection

from pullback.graphs import losses
from pullback.graphs.order import beside
from pullback.graphs.parts import Body, Node


def lost_in(node: Node, places: Collection[int], ports: Collection[int]) -> list[tuple[Node, str]]:
    """List the operations at which all ways end from operands to outputs of a node, and the kind of loss."""
    return [found for body in node.bodies for found in _Ways(body).lost(places, ports)]


class _Ways:
    """Follow what a gradient could come back along, through one body."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.after, self.before = beside(body.edges)

    def lost(self, places: Collection[int], ports: Collection[int]) -> list[tuple[Node, str]]:
        """List where the ways end; nothing if one of them leads to an output that is asked for."""
        body = self.body
        starts = {body.entries[place] for place in places if place in body.entries}
        while True:
            ends, left = self._followed(starts)
            more = {body.entries[body.again[port]] for port in left if port in body.again}
            if more <= starts:
                return [] if left & set(ports) else self._in_order(ends)
            starts |= more  # what a round hands on comes in again

    def _in_order(self, ends: dict[int, list[tuple[Node, str]]]) -> list[tuple[Node, str]]:
        """List the ends as they ran; comparisons last, which mostly decide where the others run."""
        found = [end for i in sorted(ends) for end in ends[i]]
        return sorted(found, key=lambda end: end[0].does == "compare")

    def _followed(self, starts: Collection[int]) -> tuple[dict[int, list[tuple[Node, str]]], set[int]]:
        """Go from nodes as far as a gradient could come back; give where that ends, and the ports reached."""
        arrived: dict[int, set[int]] = {start: set() for start in starts}
        waiting = sorted(starts)
        ends: dict[int, list[tuple[Node, str]]] = {}
        while waiting:
            node = self.body.nodes[waiting.pop()]
            ends[node.id] = self._ends(node, arrived[node.id])
            for edge in () if ends[node.id] else self.after.get(node.id, ()):
                if edge.state != "still" and edge.place not in arrived.setdefault(edge.target, set()):
                    arrived[edge.target].add(edge.place)
                    waiting.append(edge.target)
        return ends, {self.body.exits[i] for i in arrived if i in self.body.exits}

    def _ends(self, node: Node, places: Collection[int]) -> list[tuple[Node, str]]:
        before, after = self.before.get(node.id, []), self.after.get(node.id, [])
        if node.kind == "operation" and losses.passes_nothing(node, before, after):
            return [(node, losses.of_none(node, before, after, ""))]
        return lost_in(node, places, {e.port for e in after})
