"""Eager mode: run the body unrecorded, and record the whole of it as one operation.

Invariant: the tape keeps the inputs and what `grad` closes over, nothing else. When the pullback runs and
somebody records it (a higher derivative), the body is run again from its inputs, this time recorded, so that
what it keeps for `grad` depends on the inputs as it should; the values stay those of the first run.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pullback.hosts import refusals
from pullback.hosts.closed import is_closed, watched
from pullback.hosts.kept import ChangedError, Kept
from pullback.hosts.operation import Cotangents, Derived, Operation, Pullback, filled
from pullback.hosts.tensorflow import captures, forward, pinned, private, run
from pullback.hosts.tensorflow.effects import Effects, put_back

_EFFECTS = "the effects of a body that reaches no tensor"


def apply(operation: Operation, tensors: list[Any]) -> list[Any]:
    """Run an operation and record it on every active tape and accumulator."""
    if not private.could_record():  # nobody differentiates: keep nothing
        return operation.forward(tensors)[0]
    closed = is_closed(operation)
    known = operation.plan.memo.get(_EFFECTS) if closed else None
    if known is not None:  # it needs no listening
        plan = operation.plan
        way = plan.way(tensors)
        if way not in plan.rule.shortcuts:
            plan.rule.shortcuts[way] = shortcut(operation, known)
        result, variables, mark = _unrecorded(plan.body(), tensors, plan.where)
        ran = operation.ran(tensors, result)  # type: ignore[attr-defined]
        return _recorded(operation, tensors, ran, variables, known, mark)
    effects = Effects(tensors)
    ran, variables, mark = listened(operation.forward, [tensors], operation.where, effects)
    captures.refuse_named(operation, tensors)
    effects.look_at([output for output in ran[0] if output._id <= mark])  # returned as they are
    if effects.captured and not isinstance(operation, Derived):  # a part of one that was listened to
        raise captures.captured(operation, effects.captured[0])
    if effects.records:  # the tapes outside have recorded what the body's own did: copies are free of that
        mark = private.next_tensor_id()
    if closed:
        operation.plan.memo[_EFFECTS] = effects
    return _recorded(operation, tensors, ran, variables, effects, mark)


def shortcut(operation: Any, effects: Effects) -> Callable[[Sequence[Any]], Any]:
    """Give what runs further calls of a plan whose body is closed; None is its answer to any other call."""
    plan, host, rule, body = operation.plan, operation.host, operation.rule, operation.plan.body()
    names, application = watched(operation), type(operation)

    def run_shortly(given: Sequence[Any]) -> Any:
        if (
            not host.ready(given)
            or host.bypassed is not None
            or not tf.executing_eagerly()
            or not private.could_record()
        ):
            return None
        try:
            for look, value in names:
                if look() is not value:  # a name means something else now
                    return rule.shortcuts.clear()
        except ValueError:  # a cell that is empty now
            return rule.shortcuts.clear()
        result, variables, mark = _unrecorded(body, given, rule.where)
        operation, tensors = application(plan), list(given)
        ran = operation.ran(tensors, result)
        values = _recorded(operation, tensors, ran, variables, effects, mark)
        outputs = operation.outputs
        return values[0] if outputs.tree is None else outputs.filled(values)

    return run_shortly


def listened(function: Any, args: Sequence[Any], where: str, effects: Effects) -> tuple[Any, list[Any], int]:
    """Call a function while no tape but its own records, and hear its effects."""
    tapes = private.OwnTapes()
    own = tapes.start()
    private.start_listening(effects)
    try:
        return _unrecorded(function, args, where)
    finally:
        private.stop_listening(effects)
        tapes.stop()
        effects.records = bool(own)


def _unrecorded(function: Any, args: Sequence[Any], where: str) -> tuple[Any, list[Any], int]:
    """Call a function while no tape records: its result, the variables it read, the last tensor before it."""
    mark = private.next_tensor_id()
    private.stop()
    watcher = private.watch_variables()
    try:
        result = function(*args)
        return result, list(private.watched_variables(watcher)), mark
    except run.ERRORS as error:
        run.explain(error, where)
        raise
    finally:
        private.unwatch_variables(watcher)
        private.restart()


def _recorded(
    operation: Operation,
    tensors: list[Any],
    ran: tuple[list[Any], Pullback],
    variables: list[Any],
    effects: Effects,
    mark: int,
) -> list[Any]:
    """Record what was run as one operation, and give its outputs."""
    outputs, pull = ran
    outputs = fresh(outputs, mark)
    inputs = tensors
    if variables:
        pull.require(variables)
        inputs = tensors + [tf.convert_to_tensor(variable) for variable in variables]
    backward = Backward(operation, tensors, variables, pull, effects)
    private.record_operation(operation.name, outputs, inputs, backward, backward.forward)
    return outputs


def fresh(outputs: Sequence[Any], mark: int) -> list[Any]:
    """Copy the outputs that are older than the call, or stand twice in it.

    A tape knows a tensor by its identity: an input handed through, a cached tensor or one output returned
    twice would otherwise be taken for the result of two operations.
    """
    seen: set[int] = set()
    copies = []
    for output in outputs:
        if output._id <= mark or output._id in seen:
            with private.stop_recording():
                output = tf.identity(output)
        seen.add(output._id)
        copies.append(output)
    return copies


@dataclass(eq=False, slots=True)
class Backward:
    """What a tape keeps of one call, and calls with the cotangents of its outputs."""

    operation: Operation
    tensors: list[Any]
    variables: list[Any]
    pull: Pullback
    effects: Effects

    def __call__(self, *cotangents: Any) -> list[Any]:
        dense = densify(cotangents)
        if not private.could_record():
            got = self.pull(dense, self.variables)
            return got.inputs + got.variables if got.variables else got.inputs
        with put_back(self.operation, self.effects):
            pull = self._again(self.tensors)
            got = pull(dense, self.variables)
            return next_order(self.operation, self.tensors, filled(pull, dense), got) + got.variables

    def _again(self, tensors: list[Any]) -> Pullback:
        """Run the body again, recorded: its values are those of the first run, its derivatives are new."""
        kept = Kept(self.operation, self.pull, functools.partial(pinned.link, self.operation))
        pull = self.operation.forward(tensors)[1]
        try:
            return kept.within(pull)
        except ChangedError:
            raise refusals.changed_since(self.operation) from None

    def forward(self, *tangents: Any) -> list[Any]:
        """Answer an accumulator."""
        if self.operation.has_pushforward:
            return forward.push(self.operation, self.pull, self.tensors, self.variables, tangents)
        with put_back(self.operation, self.effects):
            # A tape inside an accumulator's own computation records nothing unless its state is set aside.
            aside = private.set_accumulators_aside if self.effects.records else contextlib.nullcontext
            # A copy has no tangent of the accumulator that asks, which does not look at its own computation.
            # It would push that through the pullback, too, once its state is set aside: a tangent of the
            # tangent, which nobody asked for. Whoever else follows the inputs follows the copies.
            copies = [tf.identity(tensor) for tensor in self.tensors]
            with aside():
                pull = self._again(copies)
            return forward.push(self.operation, pull, self.tensors, self.variables, tangents)


def next_order(operation: Operation, tensors: list[Any], cotangents: list[Any], got: Cotangents) -> list[Any]:
    """Put what is known of the next derivative on the cotangents that somebody records."""
    if operation.order == 1:
        return forbid(operation, tensors + cotangents, got.inputs)
    if got.second is None:
        return got.inputs
    second = operation.second(len(cotangents))
    # in a graph, too: `tape.jacobian` runs one
    given = iter(operation.host.apply(second, tensors + cotangents))
    return [None if cotangent is None else next(given) for cotangent in got.inputs]


def forbid(operation: Operation, sources: list[Any], results: Sequence[Any]) -> list[Any]:
    """Make a derivative of these results an error, also where the body cut them off from their sources."""

    def refuse(*_: Any) -> None:
        raise refusals.second_order(operation)

    copies = []
    for result in results:
        copy = result
        if result is not None:
            with private.stop_recording():
                copy = tf.identity(result)
            private.record_operation(f"{operation.name}_grad", [copy], [result, *sources], refuse, refuse)
        copies.append(copy)
    return copies


def densify(cotangents: Sequence[Any]) -> Sequence[Any]:
    """Turn the sparse cotangent of a gather into a tensor, which `grad` can compute with."""
    for cotangent in cotangents:
        if type(cotangent) is tf.IndexedSlices:
            return [tf.convert_to_tensor(c) if type(c) is tf.IndexedSlices else c for c in cotangents]
    return cotangents
