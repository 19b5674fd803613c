"""Finding tensors that reach a body through a closure while somebody differentiates them.

A rule has no cotangent for such a tensor, so its gradient would silently be None. Names in reach of the body
are looked at on every recorded call. Whatever else a body touches (`self.w`, a helper's global) is seen by
listening to its operations: here while a graph is traced, in `effects.py` in eager mode.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import tensorflow as tf

from pullback import hosts
from pullback.hosts import refusals
from pullback.hosts.operation import Operation
from pullback.hosts.tensorflow import private


class Ear:
    """Collect the tensors that traced operations take from outside."""

    def __init__(self, given: Sequence[Any]) -> None:
        self.inside = {id(tensor) for tensor in given}
        self.keep: list[Any] = list(given)  # ids are those of living tensors only
        self._met: list[Any] = []
        self.begun = tf.compat.v1.get_default_graph().version  # the number of operations there are

    def __call__(
        self, op_type: str | bytes, inputs: Any, attrs: Any, outputs: Any, *_: Any, **__: Any
    ) -> Any:
        for tensor in inputs:
            if isinstance(tensor, tf.Tensor) and id(tensor) not in self.inside:
                self._meet(tensor)
        for tensor in outputs:
            if inputs:
                self.inside.add(id(tensor))
                self.keep.append(tensor)
            else:  # a graph takes a small tensor from outside as a constant of its own
                self._meet(tensor)
        return outputs  # the next callback sees them, and may replace them

    def _meet(self, tensor: Any) -> None:
        self.inside.add(id(tensor))
        self.keep.append(tensor)
        if differentiable(tensor):
            self._met.append(tensor)

    def outside(self, graph: Any, outputs: Sequence[Any]) -> list[Any]:
        """List the tensors that came from outside, seen from the graph of the call that gave the outputs.

        A branch or a loop inside the body has a graph of its own, with a placeholder for what it takes from
        around it: that is followed outwards, through one graph after the other. A placeholder that stands for
        nothing is a loop's own variable. Nobody tells of the call of a function: it is known by its number.
        """
        computed = self.inside - {id(tensor) for tensor in self._met}
        waiting, seen, found = [*self._met, *outputs], set(computed), []
        for tensor in waiting:  # it grows
            if id(tensor) in seen or not differentiable(tensor):
                continue
            seen.add(id(tensor))
            if hasattr(tensor, "numpy"):
                found.append(tensor)
            elif tensor.graph is not graph:
                outer = _external(tensor)
                waiting += tensor.op.inputs if outer is None else [outer]
            elif _told_by_inputs(tensor) and private.made_since(tensor.op, self.begun):
                waiting += tensor.op.inputs
            else:
                found.append(tensor)
        return found


def _told_by_inputs(tensor: Any) -> bool:
    """Tell whether the inputs of an operation say who follows what comes of it.

    They do not where a function was handed a small tensor from outside: a constant stands in its place.
    """
    inputs = list(tensor.op.inputs)
    return bool(inputs) and bool(private.is_followed(inputs) or not private.is_followed([tensor]))


EarT = TypeVar("EarT", bound=Ear)


@contextlib.contextmanager
def listening(ear: EarT) -> Iterator[EarT]:
    """Listen to every operation that is traced."""
    private.add_op_callback(ear)
    try:
        yield ear
    finally:
        private.remove_op_callback(ear)


def refuse_named(operation: Operation, tensors: Sequence[Any]) -> None:
    """Refuse a watched tensor that stands in a closure cell or a global of the body."""
    for name, value in operation.captured():
        # Types first: an instance check of tf.Tensor is slow, and most names are functions and modules.
        if hosts.role(type(value)) is operation.host and isinstance(value, tf.Tensor):
            if any(value is tensor for tensor in tensors):
                continue
            refuse_watched(operation, [value], name)


def refuse_watched(operation: Operation, outside: Sequence[Any], name: str = "") -> None:
    """Refuse those of the tensors that a tape or an accumulator follows."""
    for tensor in outside:
        if private.is_followed([tensor]):
            raise captured(operation, tensor, name)


def captured(operation: Operation, tensor: Any, name: str = "") -> Exception:
    """Say that a captured tensor is being differentiated."""
    described = f"a tensor of shape {tuple(tensor.shape)}"
    if not hasattr(tensor, "numpy"):
        described = f"the tensor `{tensor.name}`"
    return refusals.captured_tensor(operation, name, described, "tf.stop_gradient({})", tensor)


def depends_on_inputs(tensor: Any) -> bool:
    """Tell whether a graph tensor can carry a gradient to an argument or a variable of its function."""
    seen: set[int] = set()
    stack = [tensor]
    while stack:
        current = stack.pop()
        if id(current) in seen or not (differentiable(current) or current.dtype == tf.resource):
            continue
        seen.add(id(current))
        op = current.op
        if op.type in ("StopGradient", "PreventGradient"):
            continue
        if op.type == "Placeholder":
            outer = _external(current)
            if outer is None:
                return True  # an argument of the function
            if outer.dtype == tf.resource:
                if _is_trainable(outer, current.graph):
                    return True
                continue
            if hasattr(outer, "numpy"):
                if private.is_watched([outer]):
                    return True
            else:
                stack.append(outer)
            continue
        stack += op.inputs
    return False


def differentiable(tensor: Any) -> bool:
    """Tell whether a gradient can flow to a tensor."""
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)


def _is_trainable(handle: Any, graph: Any) -> bool:
    return any(variable.handle is handle and bool(variable.trainable) for variable in graph.variables)


def original(tensor: Any) -> Any:
    """Give what the code of a function names, where a tensor of its graph stands for that."""
    if hasattr(tensor, "numpy") or tensor.op.type != "Placeholder":
        return tensor
    outer = _external(tensor)
    return tensor if outer is None else outer


def _external(placeholder: Any) -> Any:
    """Find what a placeholder of a function stands for; None for an argument."""
    for outer, inner in getattr(placeholder.graph, "captures", ()):
        if inner is placeholder:
            return outer
    return None
