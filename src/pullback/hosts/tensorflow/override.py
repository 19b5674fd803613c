"""Overriding gradients: finding the operations of a kind while they run or are traced.

TensorFlow tells a callback of every operation. In eager mode the operation has been recorded by then, and is
recorded again, which a tape takes for the truth. In a graph the callback may hand out other outputs than the
operation's own: those of an IdentityN with the gradient that was given, for a tape outside; and TensorFlow is
kept from recording the operation itself for a tape inside.

A function is overridden by tracing it anew, in a function of our own. Calls of functions inside it are traced
already, and shared with whoever else calls them: `inline.py` copies them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pullback.errors import ForwardModeError, OverrideError
from pullback.hosts.keras import layers_called_by
from pullback.hosts.overrides import Gradients, class_of, kind_of
from pullback.hosts.tensorflow import eager, graph, inline, kinds, private, run
from pullback.hosts.tensorflow.effects import Effects

_TRACED = (tf.types.experimental.GenericFunction, tf.types.experimental.ConcreteFunction)
_PARTS = ("CondBranchFuncGraph", "WhileCondFuncGraph", "WhileBodyFuncGraph")  # graphs of branches and loops


class SharedError(Exception):
    """A call of a function was traced, with occurrences inside that are shared with others."""


class Overriding:
    """A context in which operations and layers have other gradients."""

    def __init__(self, gradients: Gradients, *, strict: bool) -> None:
        self.strict = strict  # judge by itself whether every kind was met
        self.shared: Callable[[], Exception] = _function_called if strict else SharedError
        self.gradients = gradients
        self.operations, self.layers = kinds.sort(gradients.by_kind)
        self.replaced = {kinds.name(kind): 0 for kind in gradients.by_kind}
        self.seen: Counter[str] = Counter()
        self._stack = contextlib.ExitStack()
        self._ours: set[int] = set()  # outputs that are recorded already
        self._keep: list[Any] = []

    def __enter__(self) -> Overriding:
        self.replaced = dict.fromkeys(self.replaced, 0)
        self.seen.clear()
        self._graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        self._before = 0 if self._graph is None else len(self._graph.get_operations())
        if not private.AVAILABLE:
            raise OverrideError.about(
                "override",
                found="this TensorFlow does not tell of its operations",
                expected="a version that pullback knows",
                fix="pip install 'tensorflow>=2.16'",
            )
        private.add_op_callback(self._look)
        self._stack.callback(private.remove_op_callback, self._look)
        self._stack.enter_context(private.gradients_recorded_by(self._recorded))
        if self.layers or any(isinstance(kind, str) for kind in self.gradients.by_kind):
            self._stack.enter_context(layers_called_by(self.layer_gradient, self.gradients.wrap))
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._stack.close()
        self._ours.clear()
        self._keep.clear()
        if kind is None and self._graph is not None and self._calls_with_occurrences():
            raise self.shared()
        if kind is None and self.strict:
            self.gradients.check(self.replaced, list(self.seen), "override")

    def _calls_with_occurrences(self) -> bool:
        assert self._graph is not None
        return any(inline.shared(op, self.operations) for op in self._graph.get_operations()[self._before :])

    # ── operations ───────────────────────────────────────────────────────────────────────────────────────

    def _look(
        self, op_type: str, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> Any:
        if not self._is_ours(graph) or outputs is None:
            return outputs
        op_type = tf.compat.as_str(op_type)
        if "__jvp_" in op_type:  # TensorFlow's own way to push a tangent through an operation
            return outputs
        if op_type.startswith(("__inference_", "__forward_")):
            raise self.shared()
        return self.replace(op_type, inputs, outputs)

    def replace(self, op_type: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
        """Give the outputs of an operation another gradient, if it is of a kind."""
        self.seen[op_type] += 1
        kind = self.operations.get(op_type)
        if kind is None or not inputs:
            return outputs
        self.replaced[kinds.name(kind)] += 1
        names, gradient = kinds.input_names(op_type, len(inputs)), self.gradients.by_kind[kind]
        occurrence = self.gradients.make(
            op_type, names, inputs, gradient, kinds.options(op_type, len(inputs))
        )
        return self.put(occurrence, inputs, outputs)

    def put(self, occurrence: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Give the outputs of an operation the gradient of an occurrence."""
        pull = occurrence.ran(outputs)
        inputs = list(inputs)
        if tf.executing_eagerly():
            if any(map(private.has_tangent, outputs)):  # an accumulator keeps the first tangent it was told
                raise _pushed(occurrence.where)
            backward = eager.Backward(occurrence, inputs, [], pull, Effects(inputs))
            private.record_operation(occurrence.name, list(outputs), inputs, backward, backward.forward)
            return list(outputs)
        count = len(outputs)
        gradient = graph.Gradient(occurrence, inputs, [], pull, count, ())
        results = graph.attach(gradient, [*outputs, *inputs], tf.compat.v1.get_default_graph())[:count]
        occurrence.outputs = results  # a second derivative goes through the occurrence, not past it
        self._ours |= {id(result) for result in results}
        self._keep += results
        return results

    def _recorded(self, name: str, inputs: Any, attrs: Any, outputs: Any) -> bool:
        return any(id(output) in self._ours for output in outputs)

    def _is_ours(self, built: Any) -> bool:
        """Tell whether an operation belongs to the context, and not to a function traced for others."""
        while built is not None and built is not self._graph and type(built).__name__ in _PARTS:
            built = built.outer_graph
        return built is self._graph

    # ── layers ───────────────────────────────────────────────────────────────────────────────────────────

    def layer_gradient(self, layer: Any) -> Any:
        """Give the gradient for a layer, if it is of a kind."""
        if not self._is_ours(None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()):
            return None
        self.seen[class_of(layer).__name__] += 1
        kind = kind_of(layer, self.layers)
        if kind is None:
            return None
        self.replaced[kinds.name(kind)] += 1
        return self.gradients.by_kind[kind]


def _pushed(where: str) -> ForwardModeError:
    return ForwardModeError.about(
        where,
        found="forward mode was asked for inside the context, in eager mode",
        expected="reverse mode, or an overridden function",
        why="the tangent of the operation itself is known by then",
        fix="f = pb.override(f, {…})   # and push tangents through that",
    )


def _pushed_in_graph(name: str) -> ForwardModeError:
    return ForwardModeError.about(
        name,
        found="forward mode was asked for inside a tf.function, of one that was traced before",
        expected="an accumulator outside of the tf.function, or a function written in Python",
        why="TensorFlow transposes a traced function and asks nobody whether its gradients are linear",
        fix="with tf.autodiff.ForwardAccumulator(x, dx) as accumulator:\n    y = compiled(x)",
    )


def _function_called() -> OverrideError:
    return OverrideError.about(
        "override",
        found="a tf.function was called inside the context",
        expected="operations, models and plain functions",
        why="it is traced once and shared with others: its gradients are fixed, and must stay so",
        fix="f = pb.override(f, {…})   # and call that",
    )


class Overridden:
    """A function or model with other gradients inside. `replaced` counts those of the last trace."""

    def __init__(self, function: Any, overriding: Callable[[], Overriding]) -> None:
        self.original = function
        self.replaced: dict[str, int] = {}
        name = getattr(function, "__name__", getattr(function, "name", type(function).__name__))
        self.__name__ = tf.compat.as_str_any(name)  # TensorFlow names a traced function in bytes
        self._overriding = overriding
        # A function that was loaded or traced elsewhere has no Python to run again.
        traced = not isinstance(function, _TRACED) or hasattr(function, "python_function")
        self._compiled = tf.function(self._anew if traced else self._copied, autograph=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._called(args, kwargs)
        except SharedError:
            self._compiled = tf.function(self._copied, autograph=False)
            return self._called(args, kwargs)

    def _called(self, args: Any, kwargs: Any) -> Any:
        """Run it as a function of its own; while a graph pushes tangents, as a part of that graph.

        An accumulator inside a graph transposes a function that is called there, and asks nobody about it.
        """
        if tf.executing_eagerly():
            return self._compiled(*args, **kwargs)
        # That calls are shared is known when a trace ends: this one leaves nothing behind in the graph.
        traced = self._compiled.get_concrete_function(*args, **kwargs)
        around = tf.compat.v1.get_default_graph()
        read = [graph.inside(tensor, around) for tensor in traced.captured_inputs]
        given = [leaf for leaf in tf.nest.flatten((args, kwargs)) if tf.is_tensor(leaf)]
        if not any(map(private.has_tangent, read + given)):
            return self._compiled(*args, **kwargs)
        if self._compiled.python_function == self._copied:  # nobody records a copy, operation by operation
            raise _pushed_in_graph(self.__name__)
        return self._anew(*args, **kwargs)

    def _anew(self, *args: Any, **kwargs: Any) -> Any:
        """Run the Python of the function."""
        function = run.converted(getattr(self.original, "python_function", self.original))
        context = self._overriding()
        with context:
            outputs = function(*args, **kwargs)
        return self._checked(context, outputs)

    def _copied(self, *args: Any, **kwargs: Any) -> Any:
        """Copy the operations of the function, and of those it calls."""
        context = self._overriding()
        return self._checked(context, inline.copy(self.original, args, kwargs, context))

    def _checked(self, context: Overriding, outputs: Any) -> Any:
        self.replaced = dict(context.replaced)
        context.gradients.check(self.replaced, list(context.seen), self.__name__)
        return outputs
