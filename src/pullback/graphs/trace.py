"""`pb.graph`: trace a function at its inputs, measure it once, and give the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback import hosts, tree
from pullback.errors import DefinitionError, HostError
from pullback.graphs.culprit import culprit
from pullback.graphs.framework import Asked, Sketch, Tracer
from pullback.graphs.graph import Graph
from pullback.rule import name_of


def graph(
    f: Callable[..., Any], *inputs: Any, cotangents: Sequence[Any] | None = None, **kwargs: Any
) -> Graph:
    """Draw the computation of a function, forward and backward.

    The function runs once at its inputs, and its gradient once: norms, NaN, zeros and what is missing are
    written on the edges, and the first operation that spoils a gradient is named. Print the graph, save it
    (`graph.save("graph.svg")`), or look at it in a notebook.

    Args:
        f: A function, a module, a layer or a model, of any host.
        inputs: Its arguments; tensors and arrays among them are inputs.
        cotangents: What the gradient starts from, one per floating output; ones if not given: the gradient
            of the sum of the outputs.
        kwargs: Its arguments by name.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> print(pb.graph(tf.nn.relu, tf.constant([1.0, -1.0])))  # doctest: +ELLIPSIS
        relu on tensorflow: 1 operation
        ...

    Do not use it inside a training step: it runs every operation by itself.
    """
    if not callable(f):
        raise DefinitionError.about(
            "graph",
            found=f"it was given a {type(f).__name__}",
            expected="a function, and then its arguments",
            fix="pb.graph(f, x)",
        )
    framework, tracer = tracer_of(f, [inputs, kwargs])
    return finished(tracer.trace(Asked(f, inputs, kwargs, cotangents)), name_of(f), framework)


def tracer_of(function: Any, given: Any) -> tuple[str, Tracer]:
    """Find the framework of a call, and its tracer."""
    leaves, _ = tree.flatten(given)
    host = hosts.among(leaves, function, name_of(function))
    framework = hosts.framework_of(host)
    module = hosts.part("graphs", framework)
    if module is None:
        raise HostError.about(
            name_of(function),
            found=f"{host.name} has no gradients to draw",
            expected="a tensor of TensorFlow, JAX or PyTorch",
        )
    return framework, module.TRACER


def finished(sketch: Sketch, title: str, framework: str) -> Graph:
    """Make the graph of what was traced, with its first culprit."""
    found = culprit(sketch.nodes, sketch.edges)
    notes = tuple(dict.fromkeys(sketch.notes))
    return Graph(title, framework, tuple(sketch.nodes), tuple(sketch.edges), found, sketch.problem, notes)
