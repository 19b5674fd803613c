"""TensorFlow's tape, reached directly.

`tf.custom_gradient` runs the body while the outer tape records it: slow in eager mode, and every
intermediate is kept. Recording the operation ourselves needs functions that TensorFlow does not export.
They are imported here and nowhere else; where one is missing, `AVAILABLE` is False and `public.py` is used.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from pullback.patched import Shared, patched

try:
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context, execute, forwardprop_util, imperative_grad, record
    from tensorflow.python.framework import op_callbacks, op_def_registry, ops, tensor
    from tensorflow.python.ops import control_flow_util, gen_random_ops, gen_resource_variable_ops, script_ops
    from tensorflow.python.ops.parallel_for import pfor
    from tensorflow.python.saved_model import save_context

    could_record = record.could_possibly_record
    is_watched = record.should_record_backprop
    # by tapes or accumulators: 0 for none, 1 for one of them
    is_followed, BY_SEVERAL = pywrap_tfe.TFE_Py_TapeSetPossibleGradientTypes, 2
    record_operation = pywrap_tfe.TFE_Py_TapeSetRecordOperation
    stop_recording = record.stop_recording
    watch_variables = pywrap_tfe.TFE_Py_VariableWatcherNew
    watched_variables = pywrap_tfe.TFE_Py_VariableWatcherWatchedVariables
    unwatch_variables = pywrap_tfe.TFE_Py_VariableWatcherRemove
    set_accumulators_aside = forwardprop_util.push_forwardprop_state
    stop = pywrap_tfe.TFE_Py_TapeSetStopOnThread
    restart = pywrap_tfe.TFE_Py_TapeSetRestartOnThread
    packed_tangents = pywrap_tfe.TFE_Py_PackJVPs
    next_tensor_id = ops.uid
    op_definition = op_def_registry.get
    add_op_callback = op_callbacks.add_op_callback
    remove_op_callback = op_callbacks.remove_op_callback
    vectorized = pfor.wrap
    register_function = script_ops._py_funcs.insert  # holds it weakly, and names it for PyFunc
    random, resources = gen_random_ops, gen_resource_variable_ops
    in_xla_context = control_flow_util.GraphOrParentsInXlaContext
    saving = save_context.in_save_context
    AVAILABLE = True
except (ImportError, AttributeError):  # another TensorFlow than we know
    AVAILABLE = False

native_rules: Any = None  # the module behind `tf.custom_gradient`, if it is the one we know
try:
    from tensorflow.python.ops import custom_gradient

    if hasattr(custom_gradient, "_eager_mode_decorator") and hasattr(
        custom_gradient, "_graph_mode_decorator"
    ):
        native_rules = custom_gradient
except ImportError:
    pass


@contextlib.contextmanager
def gradients_recorded_by(record: Callable[..., bool]) -> Iterator[None]:
    """Ask a function before TensorFlow records the gradient of a traced operation; it says if it did so."""
    native = execute.record_gradient

    def ask(name: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        if not record(name, inputs, attrs, outputs):
            native(name, inputs, attrs, outputs)

    with patched(execute, record_gradient=ask):
        yield


def made_since(op: Any, version: int) -> bool:
    """Tell whether an operation was added to its graph since that had a version; False if nobody knows."""
    return bool(getattr(op, "_id", 0) > version + 1)  # the first two numbers are those of its ends


class Unrecorded(threading.local):
    """The tapes and accumulators that a body opens while nothing else records, on each thread."""

    own: list[Any] | None = None  # None while no such body runs; a place is None when it was closed again


unrecorded = Unrecorded()


def followed_outside(tensor: Any) -> bool:
    """Tell whether somebody follows a tensor but the body that runs, which may have tapes of its own."""
    own = [opened for opened in unrecorded.own or () if opened]
    for close, _, handle in own:
        close(handle)
    try:
        return bool(is_followed([tensor]))
    finally:
        for _, open_again, handle in own:
            open_again(handle)


class OwnTapes:
    """Let what a body opens record, though its thread does not: TensorFlow can stop a whole thread only.

    The functions that open and close tapes are others while such a body runs, on any thread.
    """

    def start(self) -> list[Any]:
        """Begin: what is opened from now on is listed."""
        self._around, unrecorded.own = unrecorded.own, []
        _OURS.__enter__()
        return unrecorded.own

    def stop(self) -> None:
        """End."""
        unrecorded.own = self._around
        _OURS.__exit__()


@contextlib.contextmanager
def only_own_tapes() -> Iterator[None]:
    """Let nobody record on this thread but who is opened in the block."""
    tapes = OwnTapes()
    tapes.start()
    stop()
    try:
        yield
    finally:
        restart()
        tapes.stop()


def _opening(add: str, remove: str, new: str = "") -> dict[str, Any]:
    """Give functions that open and close something as TensorFlow's do, and restart or stop the thread."""
    close, open_again = getattr(pywrap_tfe, remove), getattr(pywrap_tfe, add)
    make = getattr(pywrap_tfe, new, None)

    def opened(handle: Any) -> Any:
        if unrecorded.own is not None:
            unrecorded.own.append((close, open_again, handle))
            restart()
        return handle

    def adding(handle: Any) -> None:
        open_again(handle)
        opened(handle)

    def removing(handle: Any) -> None:
        close(handle)
        own = unrecorded.own
        if own:
            own[:] = [None if opened and opened[2] is handle else opened for opened in own]
            if not any(own):
                stop()

    ours: dict[str, Any] = {add: adding, remove: removing}
    if make is not None:
        ours[new] = lambda *args: opened(make(*args))
    return ours


if AVAILABLE:
    _OURS = Shared(
        pywrap_tfe,
        **_opening("TFE_Py_TapeSetAdd", "TFE_Py_TapeSetRemove", "TFE_Py_TapeSetNew"),
        **_opening("TFE_Py_ForwardAccumulatorSetAdd", "TFE_Py_ForwardAccumulatorSetRemove"),
    )


def gradients(tape: Any, outputs: list[Any], sources: list[Any], cotangents: list[Any]) -> list[Any]:
    """Give what `tape.gradient` gives for lists of tensors; it asks again and again for their structure.

    That is a third of its time, on Python 3.11, where a question about a protocol is slow.
    """
    if not AVAILABLE or not all(isinstance(t, tensor.Tensor) for t in (*outputs, *sources)):
        return list(tape.gradient(outputs, sources, output_gradients=cotangents))
    return list(imperative_grad.imperative_grad(tape._tape, outputs, sources, output_gradients=cotangents))


def has_tangent(tensor: object) -> bool:
    """Tell whether a forward accumulator carries a tangent of this tensor."""
    return bool(packed_tangents([tensor])[1])


def in_gradient_of_loop() -> bool:
    """Tell whether the gradient of a loop is being built: it can hold no variable that the loop does not."""
    graph = ops.get_default_graph()
    while graph is not None and type(graph).__name__ != "_WhileBodyGradFuncGraph":
        graph = getattr(graph, "outer_graph", None)
    return graph is not None


def gradient_of(op: Any) -> Callable[..., Any] | None:
    """Give the gradient of an operation of a graph; None where it has none on purpose, else LookupError."""
    return ops.get_gradient_function(op)


def forget_gradient(name: str) -> None:
    """Take a name back from TensorFlow's registry of gradients."""
    ops.gradient_registry._registry.pop(name, None)


def start_listening(ear: Callable[..., Any]) -> None:
    """Do what `add_op_callback` does, in eager mode, without its questions: they cost as much as the rest."""
    context.context().op_callbacks.append(ear)
    execute.execute = execute.execute_with_callbacks


def stop_listening(ear: Callable[..., Any]) -> None:
    """Take it back."""
    heard_by = context.context().op_callbacks
    heard_by.remove(ear)
    if not heard_by:
        execute.execute = execute.quick_execute


def function_definition(name: str) -> Any:
    """Give the definition of a traced function; None for the name of an operation."""
    current = context.context()
    return current.get_function_def(name) if current.has_function(name) else None
