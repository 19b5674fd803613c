"""Drawing the operations of a traced function of TensorFlow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import tensorflow as tf

from pullback import tree
from pullback.graphs.framework import MEASURED, Asked, Marked, Sketch, heard, location_in, sentence
from pullback.graphs.parts import Flow
from pullback.graphs.tensorflow.backward import SHAPES, Backward
from pullback.graphs.tensorflow.bodies import bodies, location_of, ran
from pullback.hosts.tensorflow import private
from pullback.view.native import Given
from pullback.view.tensorflow import native

READS = ("ReadVariableOp", "ResourceGather")
LEFT = ("numpy", "SymbolicTensor", "__array__", "symbolic")


@dataclass
class Call:
    """A rule that was called while the graph was built; `start` is how many operations it had before."""

    name: str
    mark: Marked
    start: int
    graph: Any
    tensors: list[Any] = field(default_factory=list)


class Drawing:
    """Draw one traced function."""

    def __init__(self, asked: Asked, names: Sequence[str]) -> None:
        self.asked, self.names = asked, list(names)
        self.sketch = Sketch()
        self.trained: dict[int, Any] = {}  # the variables that were read and are trained, by their handles
        self.calls: list[Call] = []
        self.of: dict[str, tuple[int, int]] = {}  # the node and port of each tensor, by its name
        self.edges: list[tuple[int, Any]] = []  # of each edge its place in the sketch, and its value
        self.measures: list[tuple[str, int, Any]] = []  # what was built to be measured: for whom, and what

    # ── listening ────────────────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Hear every rule that is called, and note the variables that are read."""

        def called(name: str, mark: Marked, given: Given) -> None:
            graph = tf.compat.v1.get_default_graph()
            tensors = [leaf for leaf in tree.flatten(list(given))[0] if isinstance(leaf, tf.Tensor)]
            self.calls.append(Call(name, mark, len(graph.get_operations()), graph, tensors))

        watcher = private.watch_variables()
        try:
            with heard(native, called):
                yield
        finally:
            self.trained = {id(v.handle): v for v in private.watched_variables(watcher)}
            private.unwatch_variables(watcher)

    # ── the forward ──────────────────────────────────────────────────────────────────────────────────────

    def measured(self, run: Callable[[Sequence[Any]], list[Any]], inputs: Sequence[Any]) -> list[Any]:
        """Trace, draw and run; give the values of what was built to be measured."""

        def traced(given: list[Any]) -> list[Any]:
            graph = tf.compat.v1.get_default_graph()
            for x, name in zip(given, self.names):
                self._end(x, name)
            outputs: list[Any] = []
            try:
                outputs = run(given)
            except Exception as error:
                self._untraced(error)
            with tf.name_scope("pullback"):
                return self._drawn(graph, outputs)

        function = tf.function(traced, autograph=False)
        try:
            with _unchanged():
                return list(function(list(inputs)))
        except Exception as error:  # an operation that fails when it runs, or a gradient that cannot be built
            self.sketch.notes.append(f"The gradients could not be measured: {sentence(error)}")
            self.measures = []
            return []

    def made_variables(self) -> bool:
        """Tell whether the trace failed because variables were made in it, as a layer does at first."""
        told = (self.sketch.problem, *self.sketch.notes)
        return any("singleton tf.Variable" in text or "is out of scope" in text for text in told)

    def _untraced(self, error: Exception) -> None:
        text = sentence(error)
        self.sketch.problem = f"{self.asked.name} cannot be traced: {text}"
        self.failed = location_in(error), any(word in text for word in LEFT)

    def _end(self, tensor: Any, name: str, kind: Any = "input") -> int:
        node = self.sketch.node(kind, name=name, kind=kind)
        self.of[tensor.name] = (node, 0)
        return node

    def _drawn(self, graph: Any, outputs: list[Any]) -> list[Any]:
        """Draw the graph, and build what is to be measured."""
        operations = list(graph.get_operations())
        rules, inside = self._rules(graph, operations)
        captured = {inner.name: outer for outer, inner in getattr(graph, "captures", ())}
        steps: list[tuple[Any, int, dict[int, int]]] = []
        for index, op in enumerate(operations):
            if op.name.startswith("pullback/") or (index in inside and op.type not in READS):
                continue
            if op.type in ("Placeholder", *READS) or (op.outputs and op.outputs[0].name in captured):
                self._source(op, captured)
            elif op.inputs and op.type not in SHAPES:
                steps.append(self._step(op, rules.get(op.name)))
        built: list[Any] = []
        for place, y in enumerate(outputs):
            name = "output" if len(outputs) == 1 else f"output {place}"
            end = self.sketch.node("output", name=name, kind="output")
            if y.name in self.of:
                edge = self._edge(y, end, 0)
                built.append((edge, y))
        if self.sketch.problem:
            self._leave()
        if len(steps) > MEASURED:
            self.sketch.notes.append(
                f"{len(steps)} operations are too many to measure: their gradients are left out."
            )
            return []
        if outputs:
            backward = Backward(graph, self.sketch, self.of, self.asked.cotangents)
            backward.pull(steps, outputs, built)
            self.measures = backward.measures
        numbers = [(edge, y) for edge, y in self.edges if y.dtype.is_numeric or y.dtype.is_bool]
        self.measures += [("value", edge, y) for edge, y in numbers]
        return [y for _, _, y in self.measures]

    def _leave(self) -> None:
        """Draw the line at which a value left TensorFlow, or the trace ended."""
        location, left = self.failed
        name = "numpy" if left else "error"
        last = self.sketch.node(name, name=name, location=location)
        used = {edge.source for edge in self.sketch.edges}
        for node in list(self.sketch.nodes[:last]):
            if node.id not in used and node.kind in ("operation", "input"):
                self.sketch.edge(node.id, last, state="none")

    def _rules(self, graph: Any, operations: list[Any]) -> tuple[dict[str, Any], set[int]]:
        """Find the operation of every call: of those begun before it and not ended, the last."""
        found: dict[str, Any] = {}
        inside: set[int] = set()
        waiting = [call for call in self.calls if call.graph is graph]
        for index, op in enumerate(operations):
            if op.type != "IdentityN" or "_gradient_op_type" not in op.node_def.attr:
                continue
            begun = [call for call in waiting if call.start <= index]
            if begun:
                call = max(begun, key=lambda call: call.start)
                waiting.remove(call)
                found[op.name] = (call, self._outputs(op, call), operations[call.start : index])
                inside.update(range(call.start, index))
        inside = {i for i in inside if operations[i].type != "Placeholder"}
        return found, inside

    def _outputs(self, op: Any, call: Call) -> int:
        """Count the outputs of a rule: what stands in front of its inputs."""
        names, given = [t.name for t in op.inputs], [t.name for t in call.tensors]
        for start in reversed(range(len(names) - len(given) + 1)):  # an output may be an input itself
            if given and names[start : start + len(given)] == given:
                return start
        starts = [names.index(t.name) for t in call.tensors if t.name in names]
        return min(starts) if starts else len(names)

    def _source(self, op: Any, captured: dict[str, Any]) -> None:
        tensor = op.outputs[0]
        if op.type in READS:
            handle = captured.get(op.inputs[0].name, op.inputs[0])
            key = f"variable {op.inputs[0].name}"
            if key not in self.of:
                known = self.trained.get(id(handle))
                name = "a variable that is not trained" if known is None else str(known.name).split(":")[0]
                kind: Any = "captured" if known is None else "variable"
                node = self.sketch.node("variable", name=name, kind=kind, scope=_scope(op)[:-1])
                self.of[key] = (node, 0)
                self.sketch.origins[id(handle)] = node
            self.of[tensor.name] = self.of[key]
        elif tensor.name not in self.of and tensor.dtype.is_floating and tensor.name in captured:
            outer = captured[tensor.name]
            if isinstance(outer, tf.Tensor) and outer.shape.rank:
                self._end(tensor, f"captured {tuple(outer.shape)}", "captured")

    def _step(self, op: Any, known: Any) -> tuple[Any, int, dict[int, int]]:
        operands: list[Any] = list(op.inputs)
        if known is None:
            operation, name, rule = op.type, "", None
        else:
            call, count, _ = known
            operation, name, rule = call.name, call.name, call.mark()
            operands = [None] * count + operands[count:]
        node = self.sketch.node(operation, name=name, scope=_scope(op), rule=rule, location=location_of(op))
        if self.asked.inside:
            self.sketch.told(node, bodies=bodies(op))
        edges = {
            i: self._edge(t, node, i) for i, t in enumerate(operands) if t is not None and t.name in self.of
        }
        if known is not None:
            self._captured(known[2], [t for t in operands if t is not None], node)
        for port, tensor in enumerate(op.outputs):
            self.of[tensor.name] = (node, port)
        if all(t.dtype.is_bool for t in op.outputs):
            for edge in edges.values():
                self.sketch.calm(edge)
        return op, node, edges

    def _captured(self, body: Sequence[Any], given: Sequence[Any], node: int) -> None:
        """Draw what the body of a rule reads without being handed it: no gradient comes back from there."""
        names = {t.name for t in given}
        made = {t.name for op in body for t in op.outputs}
        read = {t.name: t for op in body for t in op.inputs if t.name not in names | made}
        for name, tensor in read.items():
            if name in self.of and tensor.dtype.is_floating:
                self._edge(tensor, node, -1)

    def _edge(self, tensor: Any, target: int, place: int) -> int:
        source, port = self.of[tensor.name]
        shape = None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
        floating = tensor.dtype.is_floating or tensor.dtype.is_complex
        state = "unmeasured" if floating else "still"
        edge = self.sketch.edge(
            source, target, shape=shape, dtype=tensor.dtype.name, state=state, port=port, place=place
        )
        self.edges.append((edge, tensor))
        return edge

    def fill(self, values: Sequence[Any]) -> None:
        """Put the measures where they belong."""
        for (what, place, _), value in zip(self.measures, values):
            array = np.asarray(value)
            if what == "edge":
                self.sketch.measure(place, array)
            elif what == "node":
                self.sketch.told(place, gradient=Flow.of(array))
            else:
                edge = self.sketch.edges[place] = replace(self.sketch.edges[place], value=Flow.of(array))
                node = self.sketch.nodes[edge.target]
                if node.does == "branch" and edge.place == 0 and node.bodies:
                    self.sketch.told(node.id, bodies=(ran(node.operation, node.bodies, array),))


@contextlib.contextmanager
def _unchanged() -> Iterator[None]:
    """Run graphs as they stand: to improve one that runs once takes longer than to run it."""
    before = tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": before})


def _scope(op: Any) -> tuple[str, ...]:
    return tuple(op.name.split("/")[:-1])
