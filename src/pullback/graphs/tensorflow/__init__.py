"""TensorFlow: the graph from the traced function.

The function is traced with AutoGraph, as a `tf.function` is, and other functions inside it are opened where
that can be done. The backward is built in the same graph, one operation at a time, by the gradient that
TensorFlow has registered for it: so the share of each edge is known, and which tensors of the forward its
gradient reads. A rule is an operation that passes its outputs and inputs on; what was traced while it ran is
inside of it, and not drawn.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pullback.graphs.framework import Asked, Sketch, Tracer


class TensorFlow(Tracer):
    """Trace functions of TensorFlow's tensors."""

    def owns(self, value: Any) -> bool:
        tf = sys.modules.get("tensorflow")
        return (
            tf is not None and hasattr(tf, "is_tensor") and bool(tf.is_tensor(value) or self.variable(value))
        )

    def variable(self, value: Any) -> bool:
        from pullback.view.tensorflow.leaves import is_variable

        return is_variable(value)

    def key(self, variable: Any) -> int:
        from pullback.view.tensorflow.leaves import variable_of

        return id(variable_of(variable).handle)

    def trained(self, variable: Any) -> bool:
        return bool(variable.trainable)

    def trace(self, asked: Asked) -> Sketch:
        import tensorflow as tf

        from pullback.graphs.tensorflow.drawing import Drawing
        from pullback.view.tensorflow.leaves import quiet

        arguments = asked.arguments(self.is_input)
        inputs = [tf.convert_to_tensor(leaf) for leaf in arguments.inputs]
        convert = tf.__internal__.autograph
        function = getattr(asked.function, "python_function", asked.function)
        converted = convert.tf_convert(function, convert.control_status_ctx())

        def traced(inlined: bool) -> tuple[Drawing, list[Any]]:
            drawing = Drawing(asked, asked.names(arguments))

            def run(given: Sequence[Any]) -> list[Any]:
                args, kwargs = arguments.filled(given)
                with drawing.listening(), _opened() if inlined else contextlib.nullcontext():
                    found = tf.nest.flatten(converted(*args, **kwargs), expand_composites=True)
                return [y for y in found if tf.is_tensor(y)]

            with quiet():
                return drawing, drawing.measured(run, inputs)

        drawing, values = traced(True)
        if drawing.made_variables():  # they are made once: after that it can be traced
            with contextlib.suppress(Exception):
                asked.function(*asked.args, **asked.kwargs)
            drawing, values = traced(True)
        if drawing.sketch.problem:
            drawing, values = traced(False)
        drawing.fill(values)
        return drawing.sketch.pruned(ends=("leave", "store") if asked.inside else ("leave",))


@contextlib.contextmanager
def _opened() -> Iterator[None]:
    """Run a `tf.function` inside the traced one as the Python that it was made of."""
    import tensorflow as tf

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


TRACER = TensorFlow()
