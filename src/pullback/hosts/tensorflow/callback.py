"""Running a foreign function in TensorFlow.

In eager mode Python calls it directly, on read-only views of the tensors. In a graph it is one
operation: its static shapes are kept, its gradient refuses, and its converter makes one call of a whole
batch. What cannot work is refused while the graph is built: compilation by XLA, and export.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from pullback.errors import ExternalError
from pullback.hosts.foreign import Foreign
from pullback.hosts.numpy import callback as on_arrays
from pullback.hosts.numpy.callback import Maps
from pullback.hosts.specs import Spec
from pullback.hosts.tensorflow import private

if private.AVAILABLE:
    from pullback.hosts.tensorflow import graph as graphs


def callback(
    foreign: Foreign, tensors: Sequence[Any], outputs: Sequence[Spec], *, recorded: bool
) -> list[Any]:
    """Run a foreign function on tensors."""
    tensors = list(tensors)
    if not recorded:
        return _by_public_functions(foreign, tensors, outputs)
    if not tf.executing_eagerly():
        return _Traced(foreign, outputs, ()).apply(tensors)
    made = _run_now(foreign, tensors, outputs)
    if private.could_record():
        refusal = _Refusal(foreign)
        private.record_operation(foreign.name, made, tensors, refusal.by_tape, refusal.by_tape)
    return made


_EAGER = tf.__internal__.EagerTensor


def _run_now(foreign: Foreign, tensors: list[Any], outputs: Sequence[Spec]) -> list[Any]:
    # `np.asarray` of an eager tensor is a view of its memory where that is the CPU's.
    results = on_arrays.run(foreign, [on_arrays.read_only(tensor) for tensor in tensors], outputs)
    on_arrays.own(results)
    if not tensors:
        return [tf.constant(result) for result in results]
    # This is `tf.constant` without its copy, which is not needed of what nobody else holds. An array whose
    # memory is not aligned as TensorFlow's is copied all the same.
    device = tensors[0].device
    return [_EAGER(result, device, None) for result in results]


# ── graphs ───────────────────────────────────────────────────────────────────────────────────────────────


# Pure, for TensorFlow: else a map would run both the original and its batch. The mark, which is no constant,
# keeps it from being run while the graph is optimised.
_OPERATION = "PyFuncStateless"


class _Traced:
    """A foreign function in a graph, inside a number of maps. The operation calls it."""

    def __init__(self, foreign: Foreign, outputs: Sequence[Spec], maps: Maps) -> None:
        self.foreign = foreign
        self.outputs = outputs
        self.maps = maps
        self.refusal = _Refusal(foreign)
        self._guarded = on_arrays.telling(self._run, chained=True)

    def __call__(self, *arrays: Any) -> Any:
        return self._guarded(*arrays[:-1])  # the last one is the mark

    def _run(self, *arrays: Any) -> list[Any]:
        # TensorFlow makes tensors of the arrays' own memory where it is aligned.
        views = [on_arrays.read_only(array) for array in arrays]
        return on_arrays.own(on_arrays.run(self.foreign, views, self.outputs, self.maps))

    @tf.autograph.experimental.do_not_convert
    def apply(self, tensors: list[Any], lengths: Sequence[int | None] = ()) -> list[Any]:
        """Put the operation into the graph."""
        if compiling():
            raise _not_compiled(self.foreign)
        if private.saving():
            _refuse_export(self.foreign)
        graph = tf.compat.v1.get_default_graph()
        gradient = graphs.register(self.refusal)
        with private.stop_recording(), graph.gradient_override_map({_OPERATION: gradient}):
            results = list(
                tf.raw_ops.PyFuncStateless(
                    input=[*tensors, _Mark(self.foreign).captured()],
                    token=private.register_function(self),
                    Tout=[tf.as_dtype(spec.dtype) for spec in self.outputs],
                    name=re.sub(r"\W", "_", f"{self.foreign.name} runs in Python").lstrip("_"),
                )
            )
        results[0].op.pfor_converter = self.convert  # and this keeps what is registered alive
        for result, spec in zip(results, self.outputs):
            if spec.shape is not None:
                result.set_shape([*lengths, *spec.shape])
        private.record_operation(
            self.foreign.name, results, tensors, self.refusal.by_tape, self.refusal.by_tape
        )
        return results

    def convert(self, pfor_input: Any) -> list[Any]:
        """Make the operation one of a whole batch: TensorFlow's vectorizer asks for that."""
        given = [pfor_input.input(i)[:2] for i in range(pfor_input.num_inputs - 1)]
        tensors, mapped = [tensor for tensor, _ in given], tuple(stacked for _, stacked in given)
        if not any(mapped):
            results = _Traced(self.foreign, self.outputs, self.maps).apply(tensors, self._lengths(tensors))
            return [private.vectorized(result, False) for result in results]
        batched = _Traced(self.foreign, self.outputs, (mapped, *self.maps))
        results = batched.apply(tensors, batched._lengths(tensors))
        return [private.vectorized(result, True) for result in results]

    def _lengths(self, tensors: Sequence[Any]) -> list[int | None]:
        """List what is known of the lengths of the maps."""
        depths = [0] * len(tensors)
        lengths = []
        for mapped in self.maps:
            length = None
            for i, tensor in enumerate(tensors):
                if mapped[i]:
                    if tensor.shape.rank is not None and length is None:
                        length = tensor.shape[depths[i]]
                    depths[i] += 1
            lengths.append(length)
        return lengths


class _Refusal:
    """The gradient of a foreign function: there is none, and that is said."""

    def __init__(self, foreign: Foreign) -> None:
        self.foreign = foreign

    def by_tape(self, *_: Any) -> NoReturn:
        raise on_arrays.not_differentiable(self.foreign)

    def by_graph(self, op: Any, *cotangents: Any) -> list[Any]:
        if op is None:  # a SavedModel is written
            _refuse_export(self.foreign)
        return graphs.refused(str(on_arrays.not_differentiable(self.foreign)), cotangents, op.inputs)


def _by_public_functions(foreign: Foreign, tensors: list[Any], outputs: Sequence[Spec]) -> list[Any]:
    """Run it as `tf.numpy_function`: no batches, no word at export."""

    @tf.custom_gradient
    def native(*tensors: Any) -> Any:
        if tf.executing_eagerly():
            results = _run_now(foreign, list(tensors), outputs)
        else:
            traced = _Traced(foreign, outputs, ())
            dtypes = [tf.as_dtype(spec.dtype) for spec in outputs]
            results = tf.numpy_function(lambda *arrays: traced(*arrays, None), list(tensors), dtypes)
            for result, spec in zip(results, outputs):
                result.set_shape(spec.shape)
        return results, _Refusal(foreign).by_tape

    return list(native(*tensors))


# ── what cannot work ─────────────────────────────────────────────────────────────────────────────────────


def compiling() -> bool:
    """Tell whether the graph is built for XLA.

    A function that is compiled says so to its caller, not to its graph: it is found among the callers.
    """
    if private.in_xla_context(tf.compat.v1.get_default_graph()):
        return True
    for frame, _ in traceback.walk_stack(sys._getframe()):
        if frame.f_globals.get("__name__", "").startswith("tensorflow."):
            caller = frame.f_locals.get("self")
            compiled = getattr(caller, "_jit_compile", False)
            if compiled and isinstance(caller, tf.types.experimental.GenericFunction):
                return True
    return False


def _not_compiled(foreign: Foreign) -> ExternalError:
    return ExternalError.about(
        foreign.where,
        found=f"`{foreign.name}` is in a function that XLA compiles (jit_compile=True)",
        expected="a function that TensorFlow itself runs",
        why="it runs Python code, which a program compiled by XLA cannot call",
        fix="tf.function(jit_compile=False), or model.compile(jit_compile=False);\n"
        "compile the parts before and behind it on their own",
    )


def _refuse_export(foreign: Foreign) -> NoReturn:
    raise ExternalError.about(
        foreign.where,
        found=f"`{foreign.name}` is in a function that is exported to a SavedModel",
        expected="operations that another process can run",
        why="it runs Python code of this process, which a SavedModel does not hold",
        fix="export the part without it; or model.save('model.keras'), and define it where that is loaded",
    )


class _Mark:
    """What TensorFlow asks of a tensor that a function captures, answered with a refusal.

    A function hands what it captures on to the functions that call it, so this reaches where our own code is
    not asked: a function that was traced before. When a function captures a small tensor, TensorFlow asks for
    its value, to make a constant of it; before a SavedModel is written, for the variable that it stands for.
    """

    def __init__(self, foreign: Foreign) -> None:
        self.foreign = foreign

    def captured(self) -> Any:
        """Make the tensor, and let the function that is traced capture it.

        Branches and loops get it from that function, each from the one around it: in their gradients
        TensorFlow knows no eager tensors.
        """
        graph = tf.compat.v1.get_default_graph()
        inside = []
        while getattr(graph, "is_control_flow_graph", False):
            inside.append(graph)
            graph = graph.outer_graph
        with tf.init_scope():
            tensor = tf.constant(np.zeros((), np.int8))
        if not isinstance(tensor, _EAGER) or not hasattr(graph, "capture"):
            return tensor
        tensor._capture_as_const = self.capture
        tensor._cached_variable = self.export
        for level in (graph, *reversed(inside)):
            with level.as_default():
                tensor = level.capture(tensor)
        return tensor

    def capture(self, name: str) -> None:
        """Refuse a function that XLA compiles; in any other, be no constant."""
        if compiling():
            raise _not_compiled(self.foreign)

    def export(self) -> NoReturn:
        _refuse_export(self.foreign)
