"""How the checker looks inside a function of TensorFlow: the operations of its graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pullback.view.framework import Run
from pullback.view.switches import Gaps, gaps_of
from pullback.view.tensorflow.leaves import quiet

TRACES = True  # the pullback is part of what is traced
ENDLESS = 1000  # steps of a loop of the graph
_NAMES = {
    "Greater": "gt", "GreaterEqual": "ge", "Less": "lt", "LessEqual": "le", "Equal": "eq", "NotEqual": "ne",
    "Maximum": "maximum", "Minimum": "minimum", "ClipByValue": "clamp", "Floor": "floor", "Ceil": "ceil",
    "Rint": "round", "Round": "round", "Abs": "abs", "Sign": "sign", "Relu": "relu", "Sqrt": "sqrt",
    "Rsqrt": "rsqrt", "Log": "log", "Reciprocal": "reciprocal", "Inv": "reciprocal", "Prod": "prod",
    "Cumprod": "cumprod", "Pow": "pow", "RealDiv": "div", "DivNoNan": "div", "FloorMod": "remainder",
    "LeakyRelu": "relu", "Elu": "elu", "Selu": "elu", "Xlogy": "log", "Xdivy": "div",
}  # fmt: skip


def look(run: Run) -> Callable[[Sequence[Any]], Gaps]:
    """Give the gaps of a function as a function of its sources."""
    names: dict[tuple[Any, ...], list[str]] = {}

    def traced(tensors: list[Any], variables: Sequence[Any]) -> list[Any]:
        run([*tensors, *variables])
        said, found = [], []
        for op in tf.compat.v1.get_default_graph().get_operations():
            operands = list(op.inputs)
            if op.type in _NAMES and operands and operands[0].dtype.is_floating:
                for gap in gaps_of(_NAMES[op.type], operands, tf.floor):
                    said.append(op.type)
                    found.append(gap)
        names[tuple((t.shape, t.dtype) for t in tensors)] = said
        return found

    programs: dict[tuple[Any, ...], Any] = {}

    def gaps(sources: Sequence[Any]) -> Gaps:
        tensors = [s for s in sources if not isinstance(s, tf.Variable)]
        variables = [s for s in sources if isinstance(s, tf.Variable)]
        key = tuple((t.shape, t.dtype) for t in tensors)
        if key not in programs:
            programs[key] = tf.function(lambda given: traced(given, variables), autograph=False)
        with quiet():
            values = programs[key](tensors)
        return list(zip(names[key], values))

    return gaps


def repeats(run: Run, sources: Sequence[Any]) -> int:
    """Count how often the most frequent operation runs, on one shape."""
    with quiet(), tf.Graph().as_default() as graph:
        run(
            [s if isinstance(s, tf.Variable) else tf.compat.v1.placeholder(s.dtype, s.shape) for s in sources]
        )
    operations = [op for op in graph.get_operations() if op.inputs and op.outputs]
    definition = graph.as_graph_def()
    nodes = (*definition.node, *(n for f in definition.library.function for n in f.node_def))
    if any("While" in node.op for node in nodes):
        return ENDLESS
    counted = Counter((op.type, str(op.outputs[0].shape)) for op in operations)
    return max(counted.values(), default=0)
