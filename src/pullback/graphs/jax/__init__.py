"""JAX: the graph from the jaxpr.

Calls of jitted functions are opened, with their names as scopes. Every equation is run and differentiated by
itself, so the share of each edge is known, and what its derivative keeps. Rules are one node each.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from pullback.graphs.framework import Asked, Sketch, Tracer, heard
from pullback.view.jax import native


class Jax(Tracer):
    """Trace functions of JAX arrays."""

    def owns(self, value: Any) -> bool:
        jax = sys.modules.get("jax")
        return jax is not None and hasattr(jax, "Array") and isinstance(value, jax.Array)

    def trace(self, asked: Asked) -> Sketch:
        import jax

        from pullback.graphs.jax.drawing import Drawing

        arguments = asked.arguments(self.is_input)
        inputs = [jax.numpy.asarray(leaf) for leaf in arguments.inputs]

        def run(given: Sequence[Any]) -> list[Any]:
            args, kwargs = arguments.filled(given)
            return jax.tree_util.tree_leaves(asked.function(*args, **kwargs))

        drawing = Drawing(asked)
        ends = [drawing.end(name) for name in asked.names(arguments)]
        with heard(native, drawing.called):
            try:
                program = jax.make_jaxpr(run)(inputs)
            except Exception as error:
                return drawing.untraced(run, inputs, ends, error)
        drawing.walk(program.jaxpr, program.consts, ends, inputs)
        return drawing.sketch.pruned()


TRACER = Jax()
