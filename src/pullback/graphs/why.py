"""`pb.why`: why a gradient is None, zero or NaN, read from the graph.

Going backward from the result, the first operation is looked for that is handed a gradient and passes none on
toward the source. What the edges around it were measured to be says the kind of loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pullback import tree
from pullback.errors import InputError, NoTensorError
from pullback.graphs import losses
from pullback.graphs.framework import Asked, Tracer
from pullback.graphs.graph import Graph
from pullback.graphs.parts import Node
from pullback.graphs.search import Found, Search
from pullback.graphs.text import flow
from pullback.graphs.trace import finished, tracer_of
from pullback.rule import name_of, signature_of

TENSOR = "the target"


@dataclass(frozen=True, repr=False)
class Why:
    """Hold the answer: the kind of loss, the operation, the path that was searched, and the fix.

    `gradient` is what the source has: `None`, `0`, `NaN`, `inf`, or its norm; `not defined` where JAX raises.
    `also` lists other operations that lose it on the way.
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
        told = [self.graph.problem, *(self.graph.notes if self.kind == "unknown" else ())]
        lines += [f"{text.rstrip('.')}." for text in told if text]
        return "\n".join([*lines, *([f"Fix: {self.fix}"] if self.fix else [])])

    __repr__ = __str__


def why(target: Any, source: Any) -> Why:
    """Say why a gradient is None, zero or NaN, where it was lost, and what to write instead.

    Args:
        target: A function, which is called with `source`; on PyTorch also a tensor, whose graph is read. A
            function that takes no arguments is asked for the gradient by a variable that it uses.
        source: The tensor, array or variable; a tuple of several arguments is asked for each, and so is a
            list of variables.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> print(pb.why(lambda x: tf.round(x) * 2.0, tf.constant([0.3, 1.2])).kind)
        zero derivative

    Do not use it to learn whether a gradient is right: it says where one is lost. `pb.check` checks.
    """
    given = source if type(source) is tuple else (source,)
    framework, tracer = tracer_of(target if callable(target) else why, given)
    if len(given) == 1 and type(source) in (list, dict):  # the variables of a model
        leaves = tree.flatten(source)[0]
        given = tuple(leaves) if leaves and all(map(tracer.variable, leaves)) else given
    if not callable(target):
        return _of_tensor(target, given, framework, tracer)
    variables = [leaf for leaf in given if tracer.variable(leaf)]
    called = () if variables and not signature_of(target).parameters else given
    sketch = tracer.trace(Asked(target, called, {}, inside=True))
    graph = finished(sketch, name_of(target), framework)
    named = [tracer.name(variable, target) or "the variable" for variable in variables]
    wanted = _wanted(graph, sketch.origins, called, variables, named, tracer)
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
    graph: Graph,
    origins: dict[int, int],
    called: Sequence[Any],
    variables: Sequence[Any],
    named: Sequence[str],
    tracer: Tracer,
) -> list[Node]:
    """Find the nodes that are asked for: variables that were named, or else the inputs."""
    if not variables:
        found = [node for node in graph.nodes if node.kind == "input"]
        if not found:
            leaves = tree.flatten(list(called))[0]
            raise NoTensorError(f"why: no tensor among {[type(leaf).__name__ for leaf in leaves]}")
        return found
    ids = [origins.get(tracer.key(variable)) for variable in variables]
    known = [Node(-1, "variable", "", "variable") if i is None else graph.nodes[i] for i in ids]
    return [replace(n, name=name) if n.kind != "input" else n for n, name in zip(known, named)]


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────


def _answer(graph: Graph, wanted: Sequence[Node], tracer: Tracer, variables: Sequence[Any]) -> Why:
    """Answer for the source that is worst off."""
    found = [_of_source(graph, node) for node in wanted]
    for i, variable in enumerate(variables):
        if found[i].kind not in ("unused", "numpy") and not tracer.trained(variable):
            found[i] = _made(graph, wanted[i], tracer.untrained, "None")
    return min(found, key=lambda answer: (answer.kind == "flows", answer.gradient not in ("NaN", "inf")))


def _of_source(graph: Graph, source: Node) -> Why:
    if source.id < 0:
        return _made(graph, source, "unused", "None")
    search = Search(graph, source)
    state = flow(source.gradient)
    used = search.after.get(source.id, ())
    if used and all(edge.dtype.startswith(losses.INTEGERS) for edge in used):
        return _made(graph, source, "integer source", "None", path=search.path(None))
    if not search.between:
        left = search.left()
        if left is not None:
            return _lost(graph, source, left, "None", search)
        if graph.problem:
            return _made(graph, source, "unknown", "not known")
        other = next((n for n in graph.nodes if n.kind == "captured"), None)
        if graph.title == TENSOR:
            return _made(graph, source, "no history", "None")
        if other is None:
            return _made(graph, source, "unused", "None")
        return _made(graph, source, "elsewhere", "None", Found("elsewhere", other))
    if state in ("NaN", "inf"):
        broken = search.broken()
        if broken is not None:
            return _lost(graph, source, broken, state, search)
        return _made(graph, source, "unknown", state, path=search.path(None))
    if state not in ("None", "0"):
        return _made(graph, source, "flows", state, path=search.path(None))
    found = search.lost()
    if found:
        return _lost(graph, source, found[0], state, search, tuple(map(str, found[1:])))
    if any(e.state == "flows" for e in used):
        return _made(graph, source, "cancels", state, path=search.path(None))
    return _made(graph, source, "unknown", "not known", path=search.path(None))


def _lost(
    graph: Graph, source: Node, found: Found, gradient: str, search: Search, also: tuple[str, ...] = ()
) -> Why:
    """Answer by an operation."""
    return _made(graph, source, found.kind, gradient, found, search.path(found.drawn), also)


_SHOWN = {
    "where 0·inf": "0·inf",
    "integer source": "integer",
    "rebuild": "stop",
    "while": "no gradient",
    "forward after inf": "forward",
    "zero in a loop": "zero",
    "broken in a loop": "singular",
}


def _made(
    graph: Graph,
    source: Node,
    kind: str,
    gradient: str,
    found: Found | None = None,
    path: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
) -> Why:
    loss = losses.LOSSES[kind]
    words = {"{name}": "it" if found is None else found.name}
    words["{before}"] = "" if found is None or found.before is None else str(Found("", found.before))
    if gradient == "None" and graph.host == "jax":
        gradient = "0"  # JAX has no None: it writes zeros, or raises
        refused = "" if found is None else f"{found.drawn.name} has no derivative"
        if refused and any(note.startswith(refused) for note in graph.notes):
            gradient = "not defined"
    means, fix = loss.means, loss.fix
    for mark, word in words.items():
        means, fix = means.replace(mark, word), fix.replace(mark, word)
    if kind == "flows" and graph.host == "tensorflow" and source.kind == "input":
        means += " If your tape gives None, it does not watch this tensor: tape.watch(x)."
    at = "" if found is None else str(found)
    return Why(source.name, gradient, _SHOWN.get(kind, kind), at, path, means, fix, graph, also)
