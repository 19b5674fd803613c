"""Copying a traced function into the graph that is being built, with the functions it calls written out.

A function that was traced is shared by all who call it, so nothing in it may be changed. A copy is ours.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tensorflow as tf

from pullback.errors import OverrideError

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


def contains(op: Any, kinds: Collection[str]) -> bool:
    """Tell whether an operation calls functions with operations of these kinds inside."""
    return any(
        inner.type in kinds or contains(inner, kinds)
        for body in called(op)
        for inner in body.get_operations()
    )


def shared(op: Any, kinds: Collection[str]) -> bool:
    """Tell whether occurrences are in a function that others may call too; a branch has no other caller."""
    if op.type in _CALLS:  # but no other sees the function by which TensorFlow pushes a tangent
        return "__jvp_" not in op.get_attr("f").name and contains(op, kinds)
    return any(shared(inner, kinds) for body in called(op) for inner in body.get_operations())


def called(op: Any) -> list[Any]:
    """List the graphs of the functions that an operation calls."""
    if op.type not in _CALLS and not op.type.endswith(("If", "While", "Case")):
        return []
    found = [_body(op.graph, name) for name in _function_names(op)]
    return [body for body in found if body is not None]


def _function_names(op: Any) -> list[str]:
    """List the names of the functions that an operation holds."""
    found = []
    for attribute in op.op_def.attr:
        if attribute.type in ("func", "list(func)"):
            value = op.get_attr(attribute.name)
            found += [function.name for function in (value if isinstance(value, list) else [value])]
    return found


def _body(graph: Any, name: str) -> Any:
    while graph is not None:
        function = graph._get_function(name) if hasattr(graph, "_get_function") else None
        if function is not None:
            return getattr(function, "graph", None)
        graph = getattr(graph, "outer_graph", None)
    return None


def copy(function: Any, args: Any, kwargs: Any, context: Any) -> Any:
    """Trace a function, and copy its operations with the gradients of an override."""
    leaves = tf.nest.flatten((args, kwargs))
    moving = [i for i, leaf in enumerate(leaves) if tf.is_tensor(leaf)]

    def flat(*tensors: Any) -> Any:
        filled = list(leaves)
        for i, tensor in zip(moving, tensors):
            filled[i] = tensor
        positional, keywords = tf.nest.pack_sequence_as((args, kwargs), filled)
        return function(*positional, **keywords)

    specs = [tf.TensorSpec(leaves[i].shape, leaves[i].dtype) for i in moving]
    traced = tf.function(flat).get_concrete_function(*specs).graph
    known = {id(inner): leaves[i] for inner, i in zip(traced.inputs, moving)}
    known |= {id(inner): outer for outer, inner in traced.captures}
    graph = tf.compat.v1.get_default_graph()
    for variable in traced.variables:  # so that a tape outside knows that it is read
        graph.watch_variable(variable)
    _Copy(graph, context).operations(traced, known)
    return tf.nest.map_structure(
        lambda t: known[id(t)] if tf.is_tensor(t) else t, traced.structured_outputs, expand_composites=True
    )


class _Copy:
    def __init__(self, graph: Any, context: Any) -> None:
        self.graph = graph
        self.context = context

    def operations(self, traced: Any, known: dict[int, Any]) -> None:
        """Copy the operations of a graph; `known` maps its tensors to ours, and grows."""
        copies: dict[str, Any] = {}
        for op in traced.get_operations():
            if op.type == "Placeholder" and id(op.outputs[0]) in known:
                continue
            inputs = [known[id(tensor)] for tensor in op.inputs]
            after = [copies[c.name] for c in op.control_inputs if c.name in copies]
            with tf.control_dependencies(after):
                outputs = self._call(op, inputs) if op.type in _CALLS else None
                if outputs is None:
                    self._require_copyable(op)
                    made = self._made(op, inputs)
                    copies[op.name] = made
                    outputs = self.context.replace(op.type, inputs, made.outputs)
            known.update((id(old), new) for old, new in zip(op.outputs, outputs))

    def _call(self, op: Any, inputs: list[Any]) -> list[Any] | None:
        """Write out a call of a function with occurrences inside; leave any other call as it is."""
        if not contains(op, self.context.operations):
            return None
        (body,) = called(op)
        known = {id(inner): outer for inner, outer in zip(body.inputs, inputs)}
        self.operations(body, known)
        return [known[id(tensor)] for tensor in body.outputs]

    def _made(self, op: Any, inputs: list[Any]) -> Any:
        for body in _functions(op):
            self.graph._add_function_recursive(body)
        return self.graph.create_op(
            op.type,
            inputs,
            [output.dtype for output in op.outputs],
            name=op.name.split("/")[-1],
            attrs=dict(op.node_def.attr),
            op_def=op.op_def,
        )

    def _require_copyable(self, op: Any) -> None:
        """Refuse what a copy would break: a rule bound to its graph, occurrences in branches and loops."""
        if "_gradient_op_type" in op.node_def.attr:
            found = "a function that it calls has a custom gradient inside"
            why = "that gradient belongs to the function as it was traced, and is lost in a copy"
        elif contains(op, self.context.operations):
            found = "an operation of the kind stands in a branch or a loop of a function that it calls"
            why = "a copy of a traced branch keeps its own gradients"
        else:
            return
        raise OverrideError.about(
            "override",
            found=found,
            expected="functions written in Python, down to the operations of the kind",
            why=why,
            fix="call the function's Python instead: f.python_function",
        )


def _functions(op: Any) -> list[Any]:
    """List the functions that an operation names, as the library of its graph has them."""
    found = [op.graph._get_function(name) for name in _function_names(op)]
    return [function for function in found if function is not None]
