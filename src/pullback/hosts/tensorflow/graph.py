"""Graph mode: put the rule on an operation of the graph.

A tape outside a `tf.function` differentiates the graph, operation by operation, so the rule must be the
gradient of one: an IdentityN over (outputs, inputs, variables) whose registered gradient sends cotangents of
the outputs to the inputs, past the body. The body is traced with the tapes recording, which costs nothing at
run time and keeps what `grad` closes over differentiable.

TensorFlow's registry of gradients never forgets. Ours holds a name only: the gradient itself hangs on the
operation it belongs to, dies with the graph of that operation, and its name is taken back.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pullback.errors import ForbiddenGradientError, ForwardModeError
from pullback.hosts import refusals
from pullback.hosts.operation import Derived, Operation, Pullback, filled
from pullback.hosts.tensorflow import batched, captures, eager, forward, linearity, private
from pullback.hosts.tensorflow.transpose import Transpose

_exporting: list[Any] = []  # gradients that are being written to a SavedModel
_gradients: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Trace an operation and register its gradient."""
    if _exporting:
        return _apply_for_export(operation, tensors)
    graph = tf.compat.v1.get_default_graph()
    tensors = [inside(tensor, graph) for tensor in tensors]
    with variables_read() as variables, captures.listening(captures.Ear(tensors)) as ear:
        outputs, pull = operation.forward(tensors)
    # An operation that is derived from another captures nothing of its own: that one was looked at.
    outside = [] if isinstance(operation, Derived) else ear.outside(graph, outputs)
    captures.refuse_named(operation, tensors)
    captures.refuse_watched(operation, outside)
    if variables:
        pull.require(variables)
    sources = outputs + tensors + [tf.convert_to_tensor(variable) for variable in variables]
    gradient = Gradient(operation, tensors, variables, pull, len(outputs), outside)
    return attach(gradient, sources, graph)[: len(outputs)]


@contextlib.contextmanager
def variables_read() -> Iterator[list[Any]]:
    """List the trainable variables that are read in a block, once it is over."""
    variables: list[Any] = []
    watcher = private.watch_variables()
    try:
        yield variables
        variables += private.watched_variables(watcher)
    finally:
        private.unwatch_variables(watcher)


def attach(gradient: Any, sources: list[Any], graph: Any) -> list[Any]:
    """Pass tensors through an operation that has this gradient, for tapes outside and inside the graph."""
    name = register(gradient)
    with private.stop_recording(), graph.gradient_override_map({"IdentityN": name}):
        results = list(tf.raw_ops.IdentityN(input=sources))
    private.record_operation(gradient.operation.name, results, sources, gradient.by_tape, gradient.forward)
    # This also keeps the gradient alive. On the graph itself it would be part of a cycle that the garbage
    # collector cannot see; the operation is let go when the graph is taken apart.
    results[0].op.pfor_converter = batched.converter(gradient, attach)
    return results


def inside(tensor: Any, graph: Any) -> Any:
    """Bring a tensor of an enclosing graph, or an eager one, into this graph once."""
    if getattr(tensor, "graph", None) is graph:
        return tensor
    return tf.identity(tensor) if not hasattr(graph, "capture") else graph.capture(tensor)


def refused(text: str, cotangents: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Refuse when a derivative runs, and only if something flows.

    TensorFlow traces the gradients of all outputs of a function, and hands zeros to those nobody wants.
    """
    given = [tf.convert_to_tensor(c) for c in cotangents if c is not None]
    flows = tf.reduce_any([tf.reduce_any(c != 0) for c in given])
    with tf.control_dependencies([tf.debugging.Assert(tf.logical_not(flows), [text])]):
        # XLA drops assertions: there the derivative is NaN
        return [
            tf.where(flows, tf.cast(float("nan"), x.dtype), tf.zeros_like(x))
            if captures.differentiable(x)
            else None
            for x in inputs
        ]


def register(gradient: Any) -> str:
    """Name a gradient for TensorFlow, as long as somebody else holds it."""
    name = f"Pullback-{private.next_tensor_id()}"
    _gradients[name] = gradient

    @tf.RegisterGradient(name)
    @tf.autograph.experimental.do_not_convert
    def by_graph(op: Any, *cotangents: Any) -> list[Any]:
        return _gradients[name].by_graph(op, *cotangents)

    weakref.finalize(gradient, private.forget_gradient, name)
    return name


@dataclass(eq=False)
class Gradient:
    """The gradient of one traced call."""

    operation: Operation
    tensors: list[Any]
    variables: list[Any]
    pull: Pullback
    count: int  # of the outputs
    outside: Sequence[Any]

    def batched(self, sources: Sequence[Any]) -> Any:
        return batched.Batched(self.operation, self.count, self.variables, sources, depth=1)

    def by_tape(self, *cotangents: Any) -> list[Any]:
        """Answer a tape inside the function."""
        return self._run(cotangents, apply)

    def _run(
        self, cotangents: Sequence[Any], apply_second: Callable[[Operation, list[Any]], list[Any]]
    ) -> Any:
        dense = filled(self.pull, eager.densify(cotangents[: self.count]))
        got = self.pull(dense, self.variables)
        inputs = got.inputs
        if self.operation.order == 1:
            inputs = _forbid(self.operation, self.tensors + dense, inputs)
        elif got.second is not None:
            given = iter(apply_second(self.operation.second(len(dense)), self.tensors + dense))
            inputs = [None if cotangent is None else next(given) for cotangent in inputs]
        return [None] * self.count + inputs + got.variables

    def by_graph(self, op: Any, *cotangents: Any) -> list[Any]:
        """Answer a tape outside the function, or an export, which passes no operation."""
        if op is None:
            _exporting.append(self)
            try:
                return self._run(cotangents, _apply_for_export)
            finally:
                _exporting.pop()
        for tensor in self.outside:
            if captures.depends_on_inputs(tensor):
                raise captures.captured(self.operation, tensor)
        transposing = not isinstance(self.operation, forward.Transposable) and _transposing()
        if transposing and self.operation.has_pushforward:
            return self._by_pushforward(cotangents)
        try:
            return self._by_transpose(cotangents) if transposing else self._guarded(cotangents)
        except ForbiddenGradientError as error:
            dx = refused(str(error), cotangents[: self.count], self.tensors)
            return [None] * self.count + dx + [None] * len(self.variables)

    def _by_transpose(self, cotangents: Sequence[Any]) -> list[Any]:
        """Answer TensorFlow, which transposes what it is given: a factor of NaN goes through that."""
        dense = filled(self.pull, eager.densify(cotangents[: self.count]))
        with linearity.Proof(dense) as proof:
            results = self._run(dense, apply)
        if proof.reaches(results):
            return results
        factor = forward.require_linear(self.operation, self.pull, self.tensors, self.variables)
        return [linearity.trusted(result, factor) for result in results]

    def _guarded(self, cotangents: Sequence[Any]) -> list[Any]:
        """Answer whoever differentiates the function; TensorFlow keeps this for one who pushes through it."""
        dense = filled(self.pull, eager.densify(cotangents[: self.count]))
        with linearity.Proof(dense) as proof:
            results = self._run(dense, apply)
        if isinstance(self.operation, Derived) or (
            not self.operation.has_pushforward and proof.reaches(results)
        ):
            return results
        guard = _Guard(self.operation)
        if _pushing_through_call():
            raise guard.refusal()
        places = [i for i, result in enumerate(results) if isinstance(result, tf.Tensor)]
        passed = attach(guard, [results[i] for i in places], tf.compat.v1.get_default_graph())
        for i, result in zip(places, passed):
            results[i] = result
        return results

    def _by_pushforward(self, cotangents: Sequence[Any]) -> list[Any]:
        dense = filled(self.pull, eager.densify(cotangents[: self.count]))
        through = forward.Transposable(self.operation, self.pull, len(dense), self.variables)
        results = apply(through, dense + self.tensors)
        inputs: list[Any] = [None] * len(self.tensors)
        for i, result in zip(through.given, results):
            inputs[i] = result
        return [None] * self.count + inputs + [None] * len(self.variables)

    def forward(self, *tangents: Any) -> list[Any]:
        """Answer an accumulator inside the function."""
        moving = tangents[self.count :]
        outputs = forward.push(self.operation, self.pull, self.tensors, self.variables, moving)
        return [*outputs, *moving]


def _apply_for_export(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Give an operation its gradient without registering one.

    A SavedModel keeps the gradients of its own operations, not those of operations inside a gradient. With
    δ = t − stop(t), which is zero and has derivative one, y = stop(f(t)) + Jδ has the value of f and, by
    plain differentiation, the pullback Jᵀ of the operation. J is the transpose of that pullback.
    """
    outputs, pull = operation.forward(tensors)
    cotangents = pull.zeros()
    with Transpose(cotangents, alone=False) as transpose:
        pairs = [
            (c, t - tf.stop_gradient(t)) for c, t in zip(pull(cotangents).inputs, tensors) if c is not None
        ]
        moved = transpose.push([c for c, _ in pairs], [move for _, move in pairs])
    return [tf.stop_gradient(output) + move for output, move in zip(outputs, moved)]


class _Refusal:
    """The gradient of a result that must not be differentiated."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def by_tape(self, *_: Any) -> list[Any]:
        raise refusals.second_order(self.operation)

    forward = by_tape

    def batched(self, sources: Sequence[Any]) -> _Refusal:
        return self

    def by_graph(self, op: Any, *cotangents: Any) -> list[Any]:
        """Refuse when the derivative runs, not when it is traced.

        TensorFlow traces second derivatives ahead of need, for instance for a persistent tape.
        """
        text = str(refusals.second_order(self.operation))
        with tf.control_dependencies([tf.debugging.Assert(False, [text])]):
            return [None if c is None else c * float("nan") for c in cotangents]


class _Guard:
    """The gradient of a gradient that must not be transposed: a tangent is not asked of it."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def refusal(self) -> ForwardModeError:
        known = "the pullback is not known to be linear"
        if self.operation.has_pushforward:
            known = "the rule has a pushforward"
        return ForwardModeError.about(
            self.operation.where,
            found=f"an accumulator in a `tf.function` pushes through the call of another one, and {known}",
            expected="a pullback that is linear in its cotangents, and no pushforward",
            why="TensorFlow transposes the gradient of such a call, and asks nobody",
            fix="open the accumulator outside, or call the Python function",
        )

    def by_tape(self, *cotangents: Any) -> Sequence[Any]:
        return cotangents

    forward = by_tape

    def batched(self, sources: Sequence[Any]) -> _Guard:
        return self

    def by_graph(self, op: Any, *cotangents: Any) -> Sequence[Any]:
        if _pushing_through_call():
            raise self.refusal()
        return cotangents


def _forbid(operation: Operation, sources: list[Any], results: Sequence[Any]) -> list[Any]:
    """Make a derivative of these results an error, also where the body cut them off from their sources."""
    graph = tf.compat.v1.get_default_graph()
    given = [result for result in results if result is not None]
    smooth = [source for source in sources if operation.host.differentiable(source)]
    guarded = iter(attach(_Refusal(operation), given + smooth, graph))
    return [None if result is None else next(guarded) for result in results]


def _pushing_through_call() -> bool:
    """Tell whether an accumulator is told of the call of a function while another one is traced.

    TensorFlow asks for the gradient of a call in the middle of recording it for no other reason.
    """
    for frame, _ in traceback.walk_stack(sys._getframe()):
        if frame.f_code.co_name == "record":
            return type(frame.f_locals.get("self")).__name__ == "_DelayedRewriteGradientFunctions"
    return False


def _transposing() -> bool:
    """Tell whether TensorFlow is about to transpose this gradient for an accumulator outside the function.

    It leaves no other trace than its own frame; where that is gone, forward mode through a function is
    transposed unasked, as it is for every operation of TensorFlow.
    """
    for frame, _ in traceback.walk_stack(sys._getframe()):
        if frame.f_code.co_name == "_build_functions_for_outputs":
            return bool(frame.f_locals.get("input_tangents"))
    return False
