"""Building the backward of a traced function in its own graph, one operation at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from pullback.graphs.framework import Sketch
from pullback.hosts.tensorflow import private

SHAPES = frozenset({"Shape", "ShapeN", "Rank", "Size", "ZerosLike", "OnesLike", "BroadcastGradientArgs"})


class Backward:
    """Build what is to be measured; `of` gives the node of each tensor of the forward, by its name."""

    def __init__(
        self, graph: Any, sketch: Sketch, of: dict[str, tuple[int, int]], cotangents: Sequence[Any] | None
    ) -> None:
        self.sketch, self.of, self.cotangents = sketch, of, cotangents
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
                self._measured("node", node, first)
            shares = self._shares(op, cotangents)
            if first is not None:
                self._kept(node, shares, cotangents)
            for place, edge in edges.items():
                share = shares[place] if place < len(shares) else None
                if share is not None:
                    totals.setdefault(op.inputs[place].name, []).append(share)
                    self._measured("edge", edge, share)
                elif self.sketch.edges[edge].state != "still":
                    self.sketch.measure(edge, None)
        for edge, drawn in enumerate(self.sketch.edges):  # what a rule reads without being handed it
            if drawn.place == -1:
                self.sketch.measure(edge, None)
        sources: dict[int, list[Any]] = {}
        for name, (node, _) in self.of.items():
            if self.sketch.nodes[node].is_source and name in totals:
                sources.setdefault(node, []).extend(totals[name])
        self.measures += [("node", node, _sum(shares)) for node, shares in sources.items()]

    def _measured(self, what: str, which: int, gradient: Any) -> None:
        """Have a gradient measured; a list of tensors carries one, and has no numbers itself."""
        if gradient.dtype.is_numeric:
            self.measures.append((what, which, gradient))
        elif what == "edge":
            self.sketch.edges[which] = replace(self.sketch.edges[which], state="flows")

    def _shares(self, op: Any, cotangents: list[Any]) -> list[Any]:
        if all(c is None for c in cotangents):
            return []
        filled = [
            tf.zeros_like(y) if c is None and (y.dtype.is_floating or y.dtype.is_complex) else c
            for c, y in zip(cotangents, op.outputs)
        ]
        try:
            gradient = private.gradient_of(op)
            found = None if gradient is None else gradient(op, *filled)
        except LookupError:
            self.sketch.notes.append(f"TensorFlow has no gradient for {op.type}.")
            return []
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        return [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g in found]

    def _kept(self, node: int, shares: Sequence[Any], cotangents: Sequence[Any]) -> None:
        """Count the tensors of the forward that a gradient reads, each once."""
        seen = {c.name for c in cotangents if c is not None}
        read: dict[str, Any] = {}
        waiting = [share for share in shares if share is not None]
        while waiting:
            tensor = waiting.pop()
            if tensor.name in seen:
                continue
            seen.add(tensor.name)
            if tensor.name in self.forward:
                read[tensor.name] = tensor
            else:
                waiting += tensor.op.inputs
        if all(t.shape.is_fully_defined() for t in read.values()):
            size = sum(t.shape.num_elements() * t.dtype.size for t in read.values())
            self.sketch.told(node, kept=int(size))


def _sum(shares: list[Any] | None) -> Any:
    return None if not shares else shares[0] if len(shares) == 1 else tf.add_n(shares)
