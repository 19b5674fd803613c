"""Drawing what lost its gradient: calls that autograd did not record, and values that left PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pullback.graphs import words
from pullback.graphs.torch.hearing import LEAVES, Call
from pullback.graphs.torch.measured import flow

if TYPE_CHECKING:
    from pullback.graphs.torch.drawing import Drawing


class Lost:
    """Draw beside the nodes of autograd what it does not know of."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing, self.sketch = drawing, drawing.sketch
        self.calls, self.inner = drawing.hearing.calls, drawing.hearing.inner
        self.names, self.ends = drawing.hearing.names, drawing.ends
        self.lost: dict[int, int] = {}  # the nodes that were drawn here, by the id of their call; -1 for none
        self.order = {id(call): i for i, call in enumerate(self.calls)}
        self.constants: set[int] = set()  # the tensors that nothing with a gradient leads to
        self.producers = {id(t): call for call in self.calls for t in call.outputs}
        self.within = {id(t) for call in self.inner for t in call.outputs}

    def draw(self, made: dict[int, Call]) -> None:
        """Draw what recorded calls read without a gradient; each is given with the node that reads them."""
        behind: dict[int, set[int]] = {}
        for edge in self.sketch.edges:
            behind.setdefault(edge.target, set()).add(edge.source)
        for node, call in made.items():
            self._losses(node, call, behind.get(node, set()))
        for tensor in list(self.drawing.held):  # a leaf that was computed, cut off, and made a leaf
            maker = self.producers.get(id(tensor))
            before = None if maker is None or maker.rule is not None else self._lost(maker)
            if before is not None:
                self.dropped(tensor, before, self.ends[id(tensor)], -2, still=True)

    def live(self, tensor: Any) -> int | None:
        """Give the node of a tensor in which a gradient could be expected: drawn now, if it was lost."""
        if id(tensor) in self.ends:
            return self.ends[id(tensor)]
        if tensor.grad_fn is not None:
            drawing = self.drawing
            if tensor.grad_fn not in drawing.nodes:
                drawing.autograd(tensor.grad_fn)
            return drawing.nodes[tensor.grad_fn]
        if id(tensor) in self.constants:
            return None
        call = self.producers.get(id(tensor))
        if call is None:
            if tensor.requires_grad and tensor.is_leaf:
                return self.drawing.end(tensor, self.drawing.hearing.called_as(tensor), "variable")
            if tensor.is_floating_point() and tensor.dim():
                name = self.names.get(id(tensor), f"captured {tuple(tensor.shape)}")
                return self.drawing.end(tensor, name, "captured")
            return None
        return self._lost(call)

    def _lost(self, call: Call) -> int | None:
        """Draw a call that autograd did not record, if something with a gradient leads to it.

        Those that lead to it are drawn before, in the order in which they ran: there may be thousands.
        """
        waiting, found = [call], []
        while waiting:
            one = waiting.pop()
            if id(one) not in self.lost:
                self.lost[id(one)] = -1
                found.append(one)
                waiting += [self.producers[id(t)] for t in one.tensors if self._is_unrecorded(t)]
        for one in sorted(found, key=lambda one: self.order[id(one)]):
            self._draw(one)
        node = self.lost[id(call)]
        return node if node >= 0 else None

    def _is_unrecorded(self, tensor: Any) -> bool:
        return tensor.grad_fn is None and id(tensor) not in self.ends and id(tensor) in self.producers

    def _draw(self, call: Call) -> None:
        behind = [(t, self.live(t)) for t in call.tensors if all(t is not o for o in call.outputs)]
        behind = [(t, node) for t, node in behind if node is not None and node >= 0]
        if not behind:
            self.constants |= {id(t) for t in call.outputs}
            return
        name = words.shown(call.name.strip("_"))
        rule = None if call.rule is None else call.rule()
        new = self.sketch.node(name, scope=call.scope, rule=rule, location=call.location)
        self.lost[id(call)] = new
        answers = bool(call.outputs) and all(str(t.dtype) == "torch.bool" for t in call.outputs)
        for place, (t, node) in enumerate(behind):
            self.dropped(t, node, new, place, still=answers)

    def dropped(self, tensor: Any, source: Any, target: int, place: int, still: bool = False) -> None:
        still = still or not tensor.requires_grad  # it was lost before
        self.sketch.edge(
            source, target,
            shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."), value=flow(tensor),
            state="still" if still else "none", place=place,
        )  # fmt: skip

    def _losses(self, node: int, call: Call, known: set[int]) -> None:
        """Draw what a recorded call read without a gradient, and what a rule read without being handed it."""
        for tensor in call.tensors:
            if not tensor.requires_grad:
                source = self.live(tensor)
                if source is not None and source not in known and source != node:
                    self.dropped(tensor, source, node, -2)
        own = {id(t) for t in call.tensors}
        for tensor in call.captured:
            if id(tensor) in own or id(tensor) in self.within:
                continue
            own.add(id(tensor))
            source = self.live(tensor) if tensor.requires_grad or id(tensor) in self.producers else None
            if source is not None and source not in known and source != node:
                self.dropped(tensor, source, node, -1)

    def exits(self) -> None:
        """Draw where a value with a gradient left PyTorch."""
        for call in self.calls:
            if (call.name in LEAVES or call.name == "error") and id(call) not in self.lost:
                behind = [(t, self.live(t)) for t in call.tensors]
                sources = [(t, node) for t, node in behind if node is not None and node >= 0]
                if sources:
                    new = self.sketch.node(call.name.strip("_"), scope=call.scope, location=call.location)
                    self.lost[id(call)] = new
                    for place, (t, node) in enumerate(sources):
                        self.dropped(t, node, new, place)
