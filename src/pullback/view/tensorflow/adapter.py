"""TensorFlow callables as subjects of the checker.

A pullback rule, a `tf.custom_gradient` function, a Keras layer or loss, a plain function. The trainable
variables of a Keras layer, and those that a rule of TensorFlow's reads, are inputs too: they are set before
each call.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from pullback.errors import PullbackError
from pullback.hosts.keras import numbered
from pullback.hosts.tensorflow import HOST, private
from pullback.rule import reach
from pullback.view.adapter import Adapter
from pullback.view.arguments import is_array
from pullback.view.framework import Run, Vjp
from pullback.view.subject import Array, Arrays, Subject
from pullback.view.tensorflow import native
from pullback.view.tensorflow.leaves import array_of, is_variable, quiet, tensor_of, variable_of
from pullback.view.tensorflow.words import TensorFlowWords


class TensorFlowAdapter(Adapter):
    """Run a callable of TensorFlow on arrays."""

    host = HOST
    natives = native
    words = TensorFlowWords()
    builtin = ("tensorflow", "keras")
    slow = frozenset({"XLA"})

    def is_input(self, leaf: Any) -> bool:
        return is_array(leaf) or tf.is_tensor(leaf) or is_variable(leaf)

    def tensor(self, leaf: Any, name: str = "an output") -> tf.Tensor:
        return tensor_of(leaf)

    def array(self, tensor: Any) -> Array:
        return array_of(tensor)

    def converted(self, tensor: Any, dtype: str) -> Any:
        return tf.cast(tensor, dtype)

    def weights(self) -> dict[str, Any]:
        self.variables = []
        if self._is_layer():
            self.function(*self.arguments.args, **self.arguments.kwargs)  # builds the weights
            layer: Any = self.function
            self.variables = [variable_of(v) for v in layer.trainable_variables]
        elif (self.native is not None or self.rule is not None) and self.original is None:
            self.variables = self._read()
        parts = [] if self._is_layer() else self.parts()
        said = {id(value): name for part in parts for name, value in reach(part)}
        names = [said.get(id(v), str(getattr(v, "name", "variable")).split(":")[0]) for v in self.variables]
        return dict(zip(numbered(names), self.variables))

    def _is_layer(self) -> bool:
        return hasattr(self.function, "trainable_variables")

    def _read(self) -> list[tf.Variable]:
        """List the variables that a rule reads beside its arguments: its gradient has to say theirs, too."""
        with tf.GradientTape() as tape, contextlib.suppress(PullbackError):  # the first probe says it
            self.function(*self.arguments.args, **self.arguments.kwargs)
        handed = {id(variable_of(v)) for v in self.arguments.inputs if is_variable(v)}
        return [v for v in tape.watched_variables() if id(v) not in handed]

    def written_parameters(self) -> list[str]:
        return super().written_parameters() if self._is_layer() else list(self.parameters)

    @contextlib.contextmanager
    def surroundings(self) -> Iterator[None]:
        """Give the variables back the values that they had: the program goes on with them."""
        before = [v.read_value() for v in self.variables]
        try:
            yield
        finally:
            for variable, value in zip(self.variables, before):
                variable.assign(value)

    def bound(self, parameters: Sequence[Any]) -> Callable[..., Any]:
        return self.function

    def sources(self, inputs: Arrays) -> list[Any]:
        count = len(self.tensors)
        for variable, value in zip(self.variables, inputs[count:]):
            variable.assign(value)
        return [*self.constants(inputs[:count]), *self.variables]

    def constants(self, arrays: Arrays) -> list[tf.Tensor]:
        return [tf.constant(a) for a in arrays]

    def vjp(self, run: Run, sources: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        moving = self.among(sources)
        with tf.GradientTape() as tape:
            tape.watch([s for s in moving if not isinstance(s, tf.Variable)])
            outputs = run(sources)
        return private.gradients(tape, outputs, moving, list(cotangents))

    def recorded(self, sources: Sequence[Any]) -> list[Any]:
        """Give the outputs as they are where a tape records: a function may run in another way there."""
        with tf.GradientTape() as tape:
            tape.watch([s for s in self.among(sources) if not isinstance(s, tf.Variable)])
            return self.run()(sources)

    def subject(self) -> Subject:
        return replace(super().subject(), recorded=self.forward_of(self.recorded))

    def second(
        self, run: Run, sources: Sequence[Any], cotangents: Sequence[Any], weights: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        moving, cots = self.among(sources), list(cotangents)
        tensors = [s for s in moving if not isinstance(s, tf.Variable)]
        with tf.GradientTape() as outer:
            outer.watch(tensors + cots)
            with tf.GradientTape() as inner:
                inner.watch(tensors)
                outputs = run(sources)
            grads = private.gradients(inner, outputs, moving, cots)
            terms = [
                tf.cast(
                    tf.math.real(tf.reduce_sum(tf.math.conj(w) * tf.convert_to_tensor(g))),
                    tf.float64,
                )
                for w, g in zip(weights, grads)
                if g is not None and w is not None
            ]
            total = tf.add_n(terms) if terms else tf.constant(0.0, tf.float64)
        found = outer.gradient(total, moving + cots)
        return found[: len(moving)], found[len(moving) :]

    def jvp(self, run: Run, sources: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        moving, pushed = self.among(sources), self.among(tangents)
        if any(not source.dtype.is_floating for source in moving):
            raise NotImplementedError("TensorFlow's forward mode takes floating tensors only")
        with tf.autodiff.ForwardAccumulator(moving, pushed) as accumulator:
            outputs = run(sources)
        return [accumulator.jvp(o) for o in outputs]

    def rows(self, run: Run, sources: Sequence[Any]) -> list[Sequence[Any]]:
        moving = self.among(sources)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([s for s in moving if not isinstance(s, tf.Variable)])
            outputs = run(sources)
        with quiet():
            return [tape.jacobian(output, moving) for output in outputs]

    def compiled(self) -> Mapping[str, tuple[Run, Vjp]]:
        return {"tf.function": self._traced(False), "XLA": self._traced(True)}

    def _traced(self, jit: bool) -> tuple[Run, Vjp]:
        run = self.run()
        count = len(self.tensors)  # variables are captured: they are no arguments of a tf.function

        def outputs(tensors: list[Any]) -> list[Any]:
            return run([*tensors, *self.variables])

        def gradients(tensors: list[Any], cotangents: list[Any]) -> list[Any]:
            return self.vjp(run, [*tensors, *self.variables], cotangents)

        traced = tf.function(outputs, jit_compile=jit, autograph=False)
        traced_gradients = tf.function(gradients, jit_compile=jit, autograph=False)

        def quiet_run(sources: Sequence[Any]) -> list[Any]:
            with quiet():
                return list(traced(list(sources[:count])))

        def quiet_vjp(sources: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            with quiet():
                return list(traced_gradients(list(sources[:count]), list(cotangents)))

        return quiet_run, quiet_vjp

    def opaque(self) -> bool:
        """Look for Python callbacks in the traced gradient."""

        def gradients(*tensors: tf.Tensor) -> list[Any]:
            moving = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
            with tf.GradientTape() as tape:
                tape.watch(moving)
                outputs = self.run()([*tensors, *self.variables])
            return [g for g in tape.gradient(outputs, moving) if g is not None]

        try:
            graph = tf.function(gradients, autograph=False).get_concrete_function(*self.tensors).graph
        except Exception:  # what cannot be traced is not opaque for that reason
            return False
        return any("PyFunc" in op.type for op in graph.get_operations())

    def exported(self) -> tuple[Run, Run, Sequence[Any]]:
        def run(tensors: Sequence[Any]) -> list[Any]:
            return self.run()([*tensors, *self.variables])

        module = tf.Module()
        module.kept = list(self.variables)  # a SavedModel stores only the variables that hang on it
        specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in self.tensors]
        module.run = tf.function(lambda *given: run(given), input_signature=specs, autograph=False)
        with quiet(), tempfile.TemporaryDirectory() as folder:
            options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
            tf.saved_model.save(module, folder, options=options)
            loaded = tf.saved_model.load(folder)
        return run, lambda given: list(loaded.run(*given)), self.tensors


ADAPTER = TensorFlowAdapter
