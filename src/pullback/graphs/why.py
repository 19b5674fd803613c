"""`pb.why`: why a gradient is None, zero or NaN, read from the graph.

Going backward from the result, the first operation is looked for that is handed a gradient and passes none on
toward the source. What the edges around it were measured to be says the kind of loss.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pullback import tree
from pullback.errors import InputError, NoTensorError
from pullback.graphs import bodies, losses
from pullback.graphs.culprit import loses
from pullback.graphs.framework import Asked, Tracer
from pullback.graphs.graph import Graph
from pullback.graphs.order import reached
from pullback.graphs.parts import BROKEN, Edge, Node
from pullback.graphs.text import flow
from pullback.graphs.trace import finished, tracer_of
from pullback.rule import name_of, signature_of

TENSOR = "the target"


@dataclass(frozen=True, repr=False)
class Why:
    """Hold the answer: the kind of loss, the operation, the path that was searched, and the fix.

    `gradient` is what the source has: `None`, `0`, `NaN`, `inf`, or its norm. `also` lists other operations
    that lose it on the way.
    """

    source: str
    gradient: str
    kind: str
    lost_at: str
    path: tuple[str, ...]
    means: str
    fix: str
    graph: Graph
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"The gradient of {self.graph.title} by {self.source} is {self.gradient}."]
        lines.append(f"At {self.lost_at}: {self.means}" if self.lost_at else self.means)
        if self.path:
            lines.append(f"Path: {' ← '.join(self.path)}.")
        if self.also:
            lines.append(f"It is lost at {', '.join(self.also)}, too.")
        if self.graph.problem:
            lines.append(f"{self.graph.problem.rstrip('.')}.")
        return "\n".join([*lines, *([f"Fix: {self.fix}"] if self.fix else [])])

    __repr__ = __str__


def why(target: Any, source: Any) -> Why:
    """Say why a gradient is None, zero or NaN, where it was lost, and what to write instead.

    Args:
        target: A function, which is called with `source`; on PyTorch also a tensor, whose graph is read. A
            function that takes no arguments is asked for the gradient by a variable that it uses.
        source: The tensor, array or variable; a tuple of several arguments is asked for each.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> print(pb.why(lambda x: tf.round(x) * 2.0, tf.constant([0.3, 1.2])).kind)
        zero derivative

    Do not use it to learn whether a gradient is right: it says where one is lost. `pb.check` checks.
    """
    given = source if type(source) is tuple else (source,)
    framework, tracer = tracer_of(target if callable(target) else why, given)
    if not callable(target):
        return _of_tensor(target, given, framework, tracer)
    variables = [leaf for leaf in given if tracer.variable(leaf)]
    called = () if variables and not signature_of(target).parameters else given
    sketch = tracer.trace(Asked(target, called, {}))
    graph = finished(sketch, name_of(target), framework)
    wanted = _wanted(graph, sketch.origins, called, variables, tracer)
    return _answer(graph, wanted, tracer, variables)


def _of_tensor(target: Any, given: Sequence[Any], framework: str, tracer: Tracer) -> Why:
    names = [f"source {i}" for i in range(len(given))] if len(given) > 1 else ["the source"]
    sketch = tracer.recorded(target, given, names) if tracer.owns(target) else None
    if sketch is None:
        raise InputError.about(
            "why",
            found=f"the target is of type {type(target).__name__}",
            expected="a function of the source",
            why="what a tensor was computed from is not known here: no history is kept in it",
            fix="pb.why(lambda x: loss(x), x)",
        )
    graph = finished(sketch, TENSOR, framework)
    return _answer(graph, [graph.nodes[sketch.origins[id(leaf)]] for leaf in given], tracer, given)


def _wanted(
    graph: Graph, origins: dict[int, int], called: Sequence[Any], variables: Sequence[Any], tracer: Tracer
) -> list[Node]:
    """Find the nodes that are asked for: variables that were named, or else the inputs."""
    if not variables:
        found = [node for node in graph.nodes if node.kind == "input"]
        if not found:
            leaves = tree.flatten(list(called))[0]
            raise NoTensorError(f"why: no tensor among {[type(leaf).__name__ for leaf in leaves]}")
        return found
    ids = [origins.get(tracer.key(variable)) for variable in variables]
    return [
        Node(-1, "variable", str(getattr(v, "name", "the variable")).split(":")[0], "variable")
        if i is None
        else graph.nodes[i]
        for i, v in zip(ids, variables)
    ]


# ── the search ───────────────────────────────────────────────────────────────────────────────────────────


class Search:
    """Look for the loss between one source and the outputs."""

    def __init__(self, graph: Graph, source: Node) -> None:
        self.graph, self.source = graph, source
        self.after: dict[int, list[Edge]] = {}
        self.before: dict[int, list[Edge]] = {}
        for edge in graph.edges:
            self.after.setdefault(edge.source, []).append(edge)
            self.before.setdefault(edge.target, []).append(edge)
        self.ahead = reached([source.id], {k: [e.target for e in v] for k, v in self.after.items()})
        ends = [node.id for node in graph.nodes if node.kind == "output"]
        behind = reached(ends, {k: [e.source for e in v] for k, v in self.before.items()})
        self.between = self.ahead & behind  # what lies on a path from the source to an output

    def steps(self) -> list[Node]:
        """List the operations of the paths, from the result backward."""
        return [n for n in reversed(self.graph.nodes) if n.id in self.between and n.kind == "operation"]

    def shares(self, node: Node) -> list[Edge]:
        """List the edges from an operation toward the source."""
        return [e for e in self.before.get(node.id, ()) if e.source in self.ahead]

    def broken(self) -> tuple[str, Node | None]:
        """Find where NaN or infinity begins."""
        ends = [e for n in self.graph.nodes if n.kind == "output" for e in self.before.get(n.id, ())]
        spoils = any(e.value is None or e.value.nan or e.value.inf for e in ends)
        for node in self.graph.nodes if spoils else ():  # forward: where the value itself is spoiled
            spoiled = [e for e in self.after.get(node.id, ()) if e.value and (e.value.nan or e.value.inf)]
            fine = not any(e.value and (e.value.nan or e.value.inf) for e in self.before.get(node.id, ()))
            if spoiled and fine and node.id in self.between and any(e.value and e.value.nan for e in spoiled):
                return "forward", node
        for node in self.steps():
            arriving, shares = self.after.get(node.id, []), self.shares(node)
            if any(e.state in BROKEN for e in shares) and not any(e.state in BROKEN for e in arriving):
                later = reached([node.id], {k: [e.target for e in v] for k, v in self.after.items()})
                selected = any(n.does == "where" for n in self.graph.nodes if n.id in later - {node.id})
                return losses.of_broken(node, shares, arriving, selected), node
        return "unknown", None

    def lost(self) -> list[tuple[str, Node]]:
        """Find where the gradient becomes nothing or zeros, from the result backward."""
        found = []
        for node in self.steps():
            arriving, shares = self.after.get(node.id, []), self.shares(node)
            state = loses(node, arriving, shares)
            inside = self.inside(node, shares) if state in ("none", "zero") else []
            if inside:
                found += inside
            elif state == "none" and not any(e.state == "flows" for e in shares):
                found.append((losses.of_none(node, shares, arriving, self.graph.host), node))
            elif state == "zero":
                found.append((losses.of_zero(node, shares, arriving), node))
        if not found:  # comparisons and the like are not asked for a gradient, and give none
            for node in self.steps():
                floats = [e for e in self.shares(node) if not e.dtype.startswith(losses.INTEGERS)]
                whole = all(e.dtype.startswith(losses.INTEGERS) for e in self.after.get(node.id, ()))
                if floats and whole:
                    found.append(
                        (losses.of_none(node, floats, self.after.get(node.id, []), self.graph.host), node)
                    )
        return found

    def inside(self, node: Node, shares: Sequence[Edge]) -> list[tuple[str, Node]]:
        """Find where a loop or a condition loses it; what hands it a list of tensors is not measured."""
        arriving = self.after.get(node.id, ())
        ports = {e.port for e in arriving}
        found = [
            (kind, _inside(part, node))
            for part, kind in bodies.lost_in(node, {e.place for e in shares}, ports)
        ]
        if not found and arriving and all(e.dtype == "variant" for e in arriving):
            return [loss for e in arriving for loss in self.inside(self.graph.nodes[e.target], [e])]
        return found

    def left(self) -> Node | None:
        """Find where a value of the source leaves the framework, on no path to an output."""
        return next((n for n in reversed(self.graph.nodes) if n.id in self.ahead and n.does == "leave"), None)

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


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────


def _answer(graph: Graph, wanted: Sequence[Node], tracer: Tracer, variables: Sequence[Any]) -> Why:
    """Answer for the source that is worst off."""
    found = [_of_source(graph, node) for node in wanted]
    for i, variable in enumerate(variables):
        if found[i].kind not in ("unused", "numpy") and not tracer.trained(variable):
            found[i] = _made(graph, wanted[i], tracer.untrained, None, (), "None")
    return min(found, key=lambda answer: (answer.kind == "flows", answer.gradient not in ("NaN", "inf")))


def _of_source(graph: Graph, source: Node) -> Why:
    if source.id < 0:
        return _made(graph, source, "unused", None, (), "None")
    search = Search(graph, source)
    state = flow(source.gradient)
    used = search.after.get(source.id, ())
    if used and all(edge.dtype.startswith(losses.INTEGERS) for edge in used):
        return _made(graph, source, "integer source", None, search.path(None), "None")
    if not search.between:
        left = search.left()
        if left is not None:
            return _made(graph, source, "numpy", left, search.path(left), "None")
        if graph.problem:
            return _made(graph, source, "unknown", None, (), "not known")
        other = next((n for n in graph.nodes if n.kind == "captured"), None)
        kind = "unused" if other is None else "elsewhere"
        kind = "no history" if graph.title == TENSOR else kind
        return _made(graph, source, kind, other, (), "0" if graph.host == "jax" else "None")
    if state in ("NaN", "inf"):
        kind, node = search.broken()
        return _made(graph, source, kind, node, search.path(node), state)
    if state not in ("None", "0"):
        return _made(graph, source, "flows", None, search.path(None), state)
    found = search.lost()
    if not found:
        measured = any(e.state == "flows" for e in search.after.get(source.id, ()))
        return _made(graph, source, "cancels" if measured else "unknown", None, search.path(None), state)
    (kind, node), *rest = found
    return _made(graph, source, kind, node, search.path(node), state, tuple(_at(n) for _, n in rest))


def _inside(part: Node, node: Node) -> Node:
    """Name a part of a loop or a condition, at the place of the whole in the graph."""
    return replace(part, id=node.id, name=f"{part.name} in {node.name}")


def _at(node: Node) -> str:
    return f"{node.name} ({node.location})" if node.location else node.name


def _made(
    graph: Graph,
    source: Node,
    kind: str,
    node: Node | None,
    path: tuple[str, ...],
    gradient: str,
    also: tuple[str, ...] = (),
) -> Why:
    loss = losses.LOSSES[kind]
    name = "it" if node is None else node.name
    if gradient == "None" and graph.host == "jax":
        gradient = "0"  # JAX has no None: it writes zeros
    shown = {"where 0·inf": "0·inf", "integer source": "integer"}.get(kind, kind)
    means, fix = loss.means.replace("{name}", name), loss.fix.replace("{name}", name)
    if kind == "flows" and graph.host == "tensorflow" and source.kind == "input":
        means += " If your tape gives None, it does not watch this tensor: tape.watch(x)."
    at = "" if node is None else _at(node)
    return Why(source.name, gradient, shown, at, path, means, fix, graph, also)
