"""What an eager run of a body does beside computing its outputs, heard operation by operation.

On every recorded call: whether it takes a tensor that somebody differentiates and that is no argument, draws
random numbers, or changes a variable. No tensor is kept for that: the tapes are asked at once, and none of
them watches what is made inside.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from pullback.hosts import refusals
from pullback.hosts.operation import Operation
from pullback.hosts.tensorflow import private

_EAGER = tf.__internal__.EagerTensor
DRAWS, CHANGES, _MAKES = 1, 2, 4
_OTHER_DRAWS = ("Multinomial", "NonDeterministicInts", "ParameterizedTruncatedNormal", "TruncatedNormal")
_READS = (
    "DestroyResourceOp",
    "DisableCopyOnRead",
    "LookupTableFindV2",
    "LookupTableSizeV2",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VarIsInitializedOp",
    "VariableShape",
)


class Effects:
    """The effects of one run; called by TensorFlow after every operation."""

    __slots__ = ("captured", "changed", "given", "random", "records")

    def __init__(self, given: Sequence[Any]) -> None:
        self.given = {tensor._id for tensor in given}
        self.captured: list[Any] = []
        self.changed: dict[int, Any] = {}
        self.random = False
        self.records = False  # by tapes or accumulators of its own

    def __call__(
        self,
        op_type: str | bytes,
        inputs: Any,
        attrs: Any,
        outputs: Any,
        op_name: Any = None,
        graph: Any = None,
    ) -> Any:
        if graph is not None:  # a function that is traced is effects when it runs
            return outputs
        own = any(private.unrecorded.own or ())  # then tapes record, and what is made here is followed
        private.restart()  # tapes answer while they record only
        if private.is_followed(inputs) and not (own and is_jvp(op_type)):
            self.look_at(inputs)
        if own:
            self.given.update(tensor._id for tensor in outputs)
        else:
            private.stop()
        does = effect(op_type)
        if does:
            self.random = self.random or bool(does & DRAWS)
            if does & _MAKES:
                self.given.update(tensor._id for tensor in outputs)
            if does & CHANGES:
                self._note(inputs)
        return outputs

    def look_at(self, tensors: Sequence[Any]) -> None:
        """Note the tensors that are no arguments, and that somebody differentiates."""
        for tensor in tensors:
            if (
                type(tensor) is _EAGER
                and tensor._id not in self.given
                and tensor.dtype != tf.resource
                and private.followed_outside(tensor)
            ):
                self.captured.append(tensor)

    def _note(self, inputs: Sequence[Any]) -> None:
        for tensor in inputs:
            if tensor.dtype == tf.resource and tensor._id not in self.given:
                self.changed[tensor._id] = tensor


def is_jvp(op_type: str | bytes) -> bool:
    """Tell whether an operation is TensorFlow's own way to push a tangent through another."""
    return "__jvp_" in (op_type.decode() if isinstance(op_type, bytes) else op_type)


@functools.lru_cache(maxsize=4096)
def effect(op_type: str | bytes) -> int:
    """Tell what else an operation, or a function by its name, does than to compute its outputs."""
    name = op_type.decode() if isinstance(op_type, bytes) else op_type  # both occur
    function = private.function_definition(name)
    if function is not None:
        found = 0
        for node in function.node_def:
            found |= effect(node.op)
            for value in node.attr.values():
                for called in (value.func, *value.list.func):
                    found |= effect(called.name) if called.name else 0
        return found
    if name == "VarHandleOp":
        return _MAKES
    draws = name in _OTHER_DRAWS or "Random" in name or name.startswith(("Rng", "StatefulUniform"))
    if draws and not name.startswith("Stateless"):
        return DRAWS
    definition = private.op_definition(name)
    if definition is None or name in _READS or name.endswith("PartitionedCall"):
        return 0
    resource = tf.resource.as_datatype_enum
    return CHANGES if any(arg.type == resource for arg in definition.input_arg) else 0


@contextlib.contextmanager
def put_back(operation: Operation, effects: Effects) -> Iterator[None]:
    """Let a body run again, and give the variables that it changes the values that they have now."""
    if effects.random:
        raise refusals.random_body(operation, ", or use a stateless random function")
    values = []
    with private.stop_recording():
        for handle in effects.changed.values():
            data = getattr(handle, "_handle_data", None)
            if data is None or not data.is_set:
                raise refusals.run_again(operation, "changes a resource that cannot be put back")
            dtype = tf.as_dtype(data.shape_and_type[0].dtype)
            values.append((handle, tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)))
    try:
        yield
    finally:
        with private.stop_recording():
            for handle, value in values:
                tf.raw_ops.AssignVariableOp(resource=handle, value=value)
