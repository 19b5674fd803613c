"""Functions that run again in TensorFlow.

The function runs unrecorded, and its values are grafted onto what it reads: its inputs, the tensors that it
closes over, and its variables. The pullback of the graft runs the function again on those. In a graph the
second run must wait for the cotangents and must not be merged with the first, so its inputs are held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from pullback import outputs
from pullback.hosts.operation import Tensor
from pullback.hosts.tensorflow import arrays, captures, eager, graph, private, replay
from pullback.plan import Plan
from pullback.recompute.chain import Chain, First, grafted
from pullback.recompute.framework import Body, Framework, Tensors, unrolled
from pullback.replace.graft import Graft


class _First(NamedTuple):
    """What a first run returned, and what a second one needs beside the inputs."""

    returned: Any
    run: replay.Run
    captured: list[Any]
    variables: list[Any]


class TensorFlow(Framework):
    """Run functions again, on tapes and in graphs."""

    def checkpoint(self, plan: Plan, tensors: list[Tensor], *, looped: bool = False) -> Any:
        args, kwargs = plan.arguments(tensors)
        if not private.AVAILABLE:
            return plan.host.run(plan.rule.body, args, kwargs, plan.where)
        if plan.host.idle(tensors):
            with replay.as_later(plan.where):
                return plan.host.run(plan.rule.body, args, kwargs, plan.where)
        first = (_eager if tf.executing_eagerly() else _traced)(plan, tensors)
        form, values = outputs.of_values(first.returned, plan.rule, plan.host, tensors)
        sources = [*tensors, *first.captured, *map(tf.convert_to_tensor, first.variables)]

        def pull(graft: Graft, given: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Any]:
            _, found = _pulled(plan, first, given[len(values) :], given[: len(values)], cotangents, looped)
            return [None] * len(values) + found

        return Graft(plan, form, len(values), pull).applied(values, sources)

    def scan(self, body: Body, carry: Tensors, xs: Tensors, length: int) -> tuple[Tensors, Tensors]:
        if tf.executing_eagerly():
            return unrolled(body, carry, [tf.unstack(x) for x in xs], length, tf.stack)
        return _loop(body, carry, xs, length)

    def reversible(self, plan: Plan, chain: Chain, tensors: Tensors) -> Tensors:
        if plan.host.idle(tensors) or not private.AVAILABLE:
            return chain.through(tensors, lambda k, x: self.checkpoint(chain.planned(k, x), [x]))
        return grafted(plan, chain, tensors, _half, _warned if tf.executing_eagerly() else _claimed)

    def split(self, x: Tensor, sizes: list[int]) -> Tensors:
        return list(tf.split(x, sizes))


FRAMEWORK = TensorFlow()


def _loop(body: Body, carry: Tensors, xs: Tensors, length: int) -> tuple[Tensors, Tensors]:
    """Run a loop of the graph. Its arrays are read and written by rows, whose gradients are rows again."""
    rows = [tf.TensorArray(x.dtype, length, element_shape=x.shape[1:]).unstack(x) for x in xs]
    run = replay.Looped()
    carry, ys = body(carry, [row.read(0) for row in rows])  # the first round tells what the others return
    arrays = [tf.TensorArray(y.dtype, length, element_shape=y.shape).write(0, y) for y in ys]

    def one(i: Any, carry: Any, arrays: Any) -> Any:
        with run.round(i), replay.running(run):
            after, ys = body(list(carry), [row.read(i) for row in rows])
        return i + 1, after, [array.write(i, y) for array, y in zip(arrays, ys)]

    _, carry, arrays = tf.while_loop(
        lambda i, *_: i < length,
        one,
        (tf.constant(1), list(carry), arrays),
        parallel_iterations=1,
        maximum_iterations=length - 1,
    )
    return list(carry), [array.stack() for array in arrays]


def _half(plan: Plan, x: Tensor) -> First:
    """Run a half-step unrecorded."""
    first = (_eager if tf.executing_eagerly() else _traced)(plan, [x])
    added, first = first.returned, first._replace(returned=None)  # what is run again must not keep it

    def again(x: Tensor, reads: Sequence[Tensor], slope: Tensor) -> Any:
        (added,), found = _pulled(plan, first, [x, *reads], [], [slope], looped=False)
        return added, found[0], found[1:]

    return First(added, [*first.captured, *map(tf.convert_to_tensor, first.variables)], again)


def _warned(chain: Chain, host: Any, holds: Any, number: Any, values: Tensors) -> Tensors:
    """Warn of a drift."""
    if not holds:
        chain.warn(number)
    return values


def _claimed(chain: Chain, host: Any, holds: Any, number: Any, values: Tensors) -> Tensors:
    """Let a graph fail that drifts: it cannot warn, and does not know who will compile it."""
    if tf.executing_eagerly():  # its pullback is being measured, at values that no chain gave
        return values
    return list(host.require(chain.claim, holds, [number], values))


def _eager(plan: Plan, tensors: list[Tensor]) -> _First:
    """Run the function unrecorded, and hear what it reads."""
    run = replay.Run(plan.where)
    heard = replay.Heard(tensors, run)
    args, kwargs = plan.arguments(tensors)

    def function() -> Any:
        with replay.running(run):
            return plan.rule.body(*args, **kwargs)

    returned, variables, _ = eager.listened(function, [], plan.where, heard)
    heard.require_known()
    captured = {tensor._id: tensor for tensor in heard.captured}
    return _First(returned, run, list(captured.values()), variables)


def _traced(plan: Plan, tensors: list[Tensor]) -> _First:
    """Trace the function, and hear what it reads."""
    run = replay.Run(plan.where)
    args, kwargs = plan.arguments(tensors)
    here = tf.compat.v1.get_default_graph()
    ear, before = captures.Ear(tensors), len(here.get_operations())
    with graph.variables_read() as variables, captures.listening(ear), replay.running(run):
        returned = plan.host.run(plan.rule.body, args, kwargs, plan.where)
    replay.require_seen(run, here.get_operations()[before:])
    outputs = [leaf for leaf in tf.nest.flatten(returned) if isinstance(leaf, tf.Tensor)]
    captured = {id(tensor): tensor for tensor in map(captures.original, ear.outside(here, outputs))}
    return _First(returned, run, list(captured.values()), variables)


def _pulled(
    plan: Plan,
    first: _First,
    sources: Sequence[Tensor],
    values: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    looped: bool,
) -> tuple[list[Any], list[Any]]:
    """Run the function again, and pull the cotangents back to all that it reads."""
    count = plan.count
    inputs, weights = list(sources[:count]), list(sources[count + len(first.captured) :])
    captured = known = first.captured
    if not tf.executing_eagerly():
        here = tf.compat.v1.get_default_graph()
        known = [graph.inside(tensor, here) for tensor in captured]
        if not looped:
            inputs = arrays.held(inputs, [*cotangents, *values])
    run = replay.Second(first.run, first.variables, weights)
    with tf.GradientTape() as tape:
        tape.watch([x for x in (*inputs, *captured, *weights) if plan.host.differentiable(x)])
        for tensor, inner in zip(captured, known):
            # Compiled functions read a tensor of a graph around this one itself, operations as this one
            # knows it. TensorFlow says that they are the same where it first captures it, and not always.
            if inner is not tensor:
                private.record_operation("captured_value", [inner], [tensor], _alone, _alone)
        args, kwargs = plan.arguments(inputs)
        with replay.running(run):
            returned = plan.host.run(plan.rule.body, args, kwargs, plan.where)
        _, outs = outputs.of_values(returned, plan.rule, plan.host, inputs)
    pairs = [(y, dy) for y, dy in zip(outs, cotangents) if plan.host.differentiable(y)]
    found: list[Any] = tape.gradient(
        [y for y, _ in pairs],
        [*inputs, *captured, *weights, *first.variables],
        output_gradients=[dy for _, dy in pairs],
    )
    # An eager operation and a compiled function read variables themselves: what comes to them is added.
    direct = found[len(sources) :]
    ahead = len(sources) - len(direct)
    return outs, found[:ahead] + [_sum(a, b) for a, b in zip(found[ahead : len(sources)], direct)]


def _alone(part: Any) -> list[Any]:
    return [part]


def _sum(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return tf.convert_to_tensor(a) + tf.convert_to_tensor(b)
