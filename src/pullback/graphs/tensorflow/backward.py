"""Building the backward of a traced function in its own graph, one operation at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pullback.graphs.framework import Sketch
from pullback.hosts.tensorflow import recording

SHAPES = frozenset({"Shape", "ShapeN", "Rank", "Size", "ZerosLike", "OnesLike", "BroadcastGradientArgs"})


class Backward:
    """Build what is to be measured; `of` gives the node of each tensor of the forward, by its name."""

    def __init__(
        self, graph: Any, sketch: Sketch, of: dict[str, tuple[int, int]], cotangents: Sequence[Any] | None
    ) -> None:
        self.graph, self.sketch, self.of, self.cotangents = graph, sketch, of, cotangents
        self.measures: list[tuple[str, int, Any]] = []  # of an edge or a node, which, and its gradient
        self.forward = frozenset(
            t.name
            for op in graph.get_operations()
            if op.type not in ("Const", *SHAPES) and not op.name.startswith("pullback/")
            for t in op.outputs
            if t.dtype.size
        )

    def pull(self, steps: list[Any], outputs: list[Any], ends: list[Any]) -> None:
        """Build the gradients of operations, the last first; `ends` are the edges to the outputs."""
        floating = [y for y in outputs if y.dtype.is_floating or y.dtype.is_complex]
        given = self.cotangents
        seeds = (
            [tf.ones_like(y) for y in floating] if given is None else list(map(tf.convert_to_tensor, given))
        )
        totals: dict[str, list[Any]] = {}
        by_name = {}
        for y, seed in zip(floating, seeds):
            totals.setdefault(y.name, []).append(seed)
            by_name[y.name] = seed
        for edge, y in ends:
            if y.name in by_name:
                self.measures.append(("edge", edge, by_name[y.name]))
        for op, node, edges in reversed(steps):
            cotangents = [_sum(totals.get(t.name)) for t in op.outputs]
            first = next((c for c in cotangents if c is not None), None)
            if first is not None:
                self.measures.append(("node", node, first))
            begun = len(self.graph.get_operations())
            shares = self._shares(op, cotangents)
            if first is not None:
                self._kept(node, begun)
            for place, edge in edges.items():
                if self.sketch.edges[edge].state == "still":
                    continue
                share = shares[place] if place < len(shares) else None
                if share is None:
                    self.sketch.measure(edge, None)
                else:
                    self.measures.append(("edge", edge, share))
                    totals.setdefault(op.inputs[place].name, []).append(share)
        for edge, drawn in enumerate(self.sketch.edges):  # what a rule reads without being handed it
            if drawn.place == -1:
                self.sketch.measure(edge, None)
        sources: dict[int, list[Any]] = {}
        for name, (node, _) in self.of.items():
            if self.sketch.nodes[node].is_source and name in totals:
                sources.setdefault(node, []).extend(totals[name])
        self.measures += [("node", node, _sum(shares)) for node, shares in sources.items()]

    def _shares(self, op: Any, cotangents: list[Any]) -> list[Any]:
        if all(c is None for c in cotangents):
            return []
        filled = [
            tf.zeros_like(y) if c is None and (y.dtype.is_floating or y.dtype.is_complex) else c
            for c, y in zip(cotangents, op.outputs)
        ]
        try:
            gradient = recording.gradient_of(op)
            found = None if gradient is None else gradient(op, *filled)
        except LookupError:
            self.sketch.notes.append(f"TensorFlow has no gradient for {op.type}.")
            return []
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        return [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g in found]

    def _kept(self, node: int, begun: int) -> None:
        """Count the tensors of the forward that a gradient reads, each once."""
        new = self.graph.get_operations()[begun:]
        read = {t.name: t for op in new for t in op.inputs if t.name in self.forward}
        if all(t.shape.is_fully_defined() for t in read.values()):
            size = sum(t.shape.num_elements() * t.dtype.size for t in read.values())
            self.sketch.told(node, kept=int(size))


def _sum(shares: list[Any] | None) -> Any:
    return None if not shares else shares[0] if len(shares) == 1 else tf.add_n(shares)
