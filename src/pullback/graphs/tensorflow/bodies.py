"""What runs inside of a loop or a condition of TensorFlow, drawn from the functions that it calls."""

from __future__ import annotations

import os
from typing import Any

from pullback.graphs.framework import Sketch, is_user
from pullback.graphs.parts import Body
from pullback.graphs.tensorflow.backward import SHAPES
from pullback.hosts.tensorflow import inline


def bodies(op: Any) -> tuple[Body, ...]:
    """Draw the branches of a condition, the round of a loop, or the function that is called."""
    loop = op.type.endswith("While")
    first = 1 if op.type.endswith(("If", "Case")) else 0  # what decides is not handed to the branches
    return tuple(_body(graph, first, loop) for graph in inline.called(op) if _floats(graph.outputs))


def ran(operation: str, branches: tuple[Body, ...], decided: Any) -> Body:
    """Give the branch that ran: a condition has the one for True first."""
    which = int(decided) if operation.endswith("Case") else int(not decided)
    return branches[which if 0 <= which < len(branches) else -1]


def _body(graph: Any, first: int, loop: bool) -> Body:
    sketch = Sketch()
    of = {x.name: (sketch.node("input", name=x.name, kind="input"), 0) for x in graph.inputs}
    entries = {first + i: of[x.name][0] for i, x in enumerate(graph.inputs)}
    for op in graph.get_operations():
        if op.type == "Placeholder" or not op.inputs or op.type in SHAPES:
            continue
        node = sketch.node(op.type, location=location_of(op))
        sketch.told(node, bodies=bodies(op))
        for place, tensor in enumerate(op.inputs):
            _edge(sketch, of, tensor, node, place)
        of |= {tensor.name: (node, port) for port, tensor in enumerate(op.outputs)}
    exits = {}
    for port, tensor in enumerate(graph.outputs):
        end = sketch.node("output", kind="output")
        exits[end] = port
        _edge(sketch, of, tensor, end, 0)
    again = {port: port for port in exits.values()} if loop else {}
    return Body(tuple(sketch.nodes), tuple(sketch.edges), entries, exits, again)


def _edge(sketch: Sketch, of: dict[str, tuple[int, int]], tensor: Any, target: int, place: int) -> None:
    if tensor.name in of:
        source, port = of[tensor.name]
        state = "unmeasured" if _floats([tensor]) else "still"
        sketch.edge(source, target, dtype=tensor.dtype.name, state=state, port=port, place=place)


def _floats(tensors: Any) -> bool:
    """Tell whether a gradient could come back along one of these; a list of tensors carries one, too."""
    return any(t.dtype.is_floating or t.dtype.is_complex or t.dtype.name == "variant" for t in tensors)


def location_of(op: Any) -> str:
    """Find the line of the user's that made an operation."""
    frames = [f for f in op.traceback or () if is_user(f.filename)]
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
