"""Drawing the nodes of autograd, and measuring what flows between them."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from pullback.graphs import marks
from pullback.graphs.framework import Asked, Sketch, sentence
from pullback.graphs.parts import Flow, Mark
from pullback.graphs.torch.hearing import Call, Hearing
from pullback.graphs.torch.lost import Lost
from pullback.graphs.torch.measured import array, flow, kept
from pullback.view.torch import native


class Drawing:
    """Draw one run."""

    def __init__(self, asked: Asked, hearing: Hearing) -> None:
        self.asked, self.hearing = asked, hearing
        self.sketch = Sketch()
        self.ends: dict[int, int] = {}  # the node of each leaf, by its id
        self.held: list[Any] = []  # the leaves, so that no other tensor takes their ids
        self.nodes: dict[Any, int] = {}  # of autograd, by themselves
        self.passed_on: dict[int, int] = {}  # the edge of an output that is an input, by its id
        self.edges: dict[tuple[Any, int], int] = {}  # by the node that gives the gradient, and its place

    def end(self, tensor: Any, name: str, kind: Any) -> int:
        node = self.sketch.node(kind, name=name, kind=kind)
        self.ends[id(tensor)] = node
        self.sketch.origins[id(tensor)] = node
        self.held.append(tensor)
        return node

    def drawn(self, outputs: Sequence[Any]) -> Sketch:
        """Draw the nodes of autograd, then what lost a gradient, and measure."""
        calls = self.hearing.calls
        self.makers = [call for call in calls if call.stop > call.start and call.rule is None]
        self.starts = [call.start for call in self.makers]
        self.ruling: dict[str, list[Call]] = {}
        for call in calls:
            if call.rule is not None:
                self.ruling.setdefault(call.name, []).append(call)
        self.nodes = {t.grad_fn: self.ends[id(t)] for t in self.held if t.grad_fn is not None}
        self.values = {
            (t.grad_fn, t.output_nr): t
            for call in calls
            for t in call.outputs
            if t.grad_fn is not None and not t.is_sparse
        }
        for y in outputs:
            if y.grad_fn is not None:
                self.autograd(y.grad_fn)
        lost = Lost(self)
        lost.draw(self._made())
        for place, y in enumerate(outputs):
            self._output(lost, y, "output" if len(outputs) == 1 else f"output {place}")
        lost.exits()
        self._pull([y for y in outputs if y.requires_grad])
        return self.sketch.pruned()

    def autograd(self, last: Any) -> None:
        """Draw everything behind a node, from the front."""
        order: list[Any] = []
        seen = {last}
        waiting = [(last, iter(last.next_functions))]
        while waiting:  # the graph may be deeper than Python's stack
            node, rest = waiting[-1]
            following = next((f for f, _ in rest if f is not None and f not in seen), None)
            if following is None:
                order.append(node)
                waiting.pop()
            else:
                seen.add(following)
                waiting.append((following, iter(following.next_functions)))
        for node in order:
            if node not in self.nodes:
                self._node(node)

    def _node(self, node: Any) -> None:
        variable = getattr(node, "variable", None)
        if variable is not None and not node.next_functions:
            if id(variable) not in self.ends:
                self.end(variable, self.hearing.called_as(variable), "variable")
            self.nodes[node] = self.ends[id(variable)]
            return
        name, rule, label = node.name(), None, ""
        call = self._call(node)
        if getattr(node, "_forward_cls", None) is not None:
            label, rule = self._rule(node, call)
        new = self.sketch.node(
            label or name,
            name=label,
            scope=() if call is None else call.scope,
            rule=rule,
            location="" if call is None else call.location,
        )
        self.nodes[node] = new
        self.sketch.told(new, kept=kept(node))
        for place, (before, port) in enumerate(node.next_functions):
            if before is not None:
                self.edges[node, place] = self._edge(self.nodes[before], new, before, port, place)

    def _rule(self, node: Any, call: Call | None) -> tuple[str, Mark | None]:
        if call is not None and call.rule is not None:
            return call.name, call.rule()
        name = type(node).__name__.removesuffix("Backward")
        if type(node)._forward_cls.__module__.startswith("pullback."):
            return name, marks.of_maker("pullback")
        known = native.found(type(node)._forward_cls)
        return name, marks.of_maker("torch.autograd.Function") if known is None else marks.of_native(known)

    def _ruled(self, node: Any) -> Call | None:
        """Find the call of the rule that a node is: the last of its name that began before it."""
        begun = self.ruling.get(type(node).__name__.removesuffix("Backward"), [])
        at = bisect.bisect_left(begun, node._sequence_nr(), key=lambda call: call.start)
        return begun[at - 1] if at else None

    def _call(self, node: Any) -> Call | None:
        """Find the call that made a node."""
        if getattr(node, "_forward_cls", None) is not None:
            return self._ruled(node)
        number = node._sequence_nr()
        at = bisect.bisect_right(self.starts, number) - 1
        found = [c for c in self.makers[max(at - 2, 0) : at + 1] if c.start < number < c.stop]
        return found[-1] if found else None

    def _edge(self, source: int, target: int, before: Any, port: int, place: int) -> int:
        tensor = self.values.get((before, port), getattr(before, "variable", None))
        shape: Any = None
        dtype = ""
        if tensor is None:
            known = getattr(before, "_input_metadata", ())
            if port < len(known):
                shape, dtype = tuple(known[port].shape), str(known[port].dtype).removeprefix("torch.")
        else:
            shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        value = None if tensor is None else flow(tensor)
        return self.sketch.edge(
            source, target, shape=shape, dtype=dtype, value=value, port=port, place=place, state="none"
        )

    def _made(self) -> dict[int, Call]:
        """Give a node of every call that made some: the last that has an open place, or else the last."""
        found: dict[int, tuple[tuple[bool, int], int, Call]] = {}
        for node, drawn in self.nodes.items():
            call = self._call(node)
            rank = any(before is None for before, _ in node.next_functions), node._sequence_nr()
            if call is not None and (id(call) not in found or found[id(call)][0] < rank):
                found[id(call)] = (rank, drawn, call)
        return {drawn: call for _, drawn, call in found.values()}

    def _output(self, lost: Lost, y: Any, name: str) -> None:
        source = lost.live(y)
        end = self.sketch.node("output", name=name, kind="output")
        if source is None or source < 0:
            return
        if y.grad_fn is not None:
            self.edges[y.grad_fn, -1 - y.output_nr] = self._edge(source, end, y.grad_fn, y.output_nr, 0)
        else:
            lost.dropped(y, source, end, 0)
            if y.requires_grad:  # an input, as it is
                self.passed_on[id(y)] = len(self.sketch.edges) - 1

    # ── the backward ─────────────────────────────────────────────────────────────────────────────────────

    def _pull(self, outputs: Sequence[Any]) -> None:
        leaves = {n.variable: drawn for n, drawn in self.nodes.items() if hasattr(n, "variable")}
        leaves |= {t: self.ends[id(t)] for t in self.held if t.requires_grad}
        if not outputs or not leaves:
            return
        given = self.asked.cotangents
        seeds = [torch.ones_like(y) for y in outputs] if given is None else list(map(torch.as_tensor, given))
        for y, seed in zip(outputs, seeds):
            edge = self.edges.get((y.grad_fn, -1 - y.output_nr), self.passed_on.get(id(y)))
            if edge is not None:
                self.sketch.measure(edge, array(seed))
        made = [node for node in self.nodes if node.next_functions]
        hooks = [node.register_hook(self._hook(node)) for node in made]
        try:
            found = torch.autograd.grad(
                list(outputs), list(leaves), seeds, retain_graph=True, allow_unused=True
            )
        except Exception as error:
            self.sketch.notes.append(f"The gradients could not be measured: {sentence(error)}")
            for edge in self.edges.values():
                self.sketch.edges[edge] = replace(self.sketch.edges[edge], state="unmeasured", gradient=None)
            return
        finally:
            for hook in hooks:
                hook.remove()
        for drawn, gradient in zip(leaves.values(), found):
            if gradient is not None:
                self.sketch.told(drawn, gradient=Flow.of(array(gradient)))

    def _hook(self, node: Any) -> Callable[..., None]:
        def measured(shares: Sequence[Any], cotangents: Sequence[Any]) -> None:
            for place, share in enumerate(shares):
                edge = self.edges.get((node, place))
                if edge is not None and share is not None:
                    self.sketch.measure(edge, array(share))
            first = next((c for c in cotangents if c is not None), None)
            if first is not None:
                self.sketch.told(self.nodes[node], gradient=Flow.of(array(first)))

        return measured
