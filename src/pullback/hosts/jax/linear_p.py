"""The primitives `linear_p` and `output_p`: the derivative of a run of a rule, and what depends by it.

`linear_p` takes residuals and tangents of the inputs to tangents of the outputs. Its transpose is the user's
pullback, called as it stands, so reverse mode asks nothing of it. Its value is the user's pushforward, or the
transpose of the pullback, so forward mode asks that it be linear. Whatever JAX does to a program between the
two, a loop, a branch, a batch, moves the primitive along and leaves the choice open.

`output_p` is an identity of (outputs, residuals, inputs). A rule that is differentiated runs its body, and a
derivative around that one differentiates the body's operations: right for the residuals, and wrong for the
outputs, which have a rule. Those go through `output_p`, whose derivative is `linear_p`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir

from pullback.hosts import refusals
from pullback.hosts.jax.batched import front, fronts, register
from pullback.hosts.jax.derivative import Derivative, Move, Refuse
from pullback.hosts.jax.varying import typed
from pullback.hosts.operation import Operation
from pullback.hosts.refusals import Named

linear_p = Primitive("pullback_linear")
linear_p.multiple_results = True
output_p = Primitive("pullback_output")
output_p.multiple_results = True


def with_tangents(
    derivative: Derivative,
    outputs: list[Any],
    residuals: Sequence[Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Give the outputs of a run as results of its rule, and their tangents."""
    moved = tangents_of(derivative, outputs, residuals, tangents)
    if any(isinstance(primal, Tracer) for primal in primals):
        outputs = bind_outputs(derivative, outputs, residuals, primals)
    return outputs, moved


def tangents_of(
    derivative: Derivative, outputs: Sequence[Any], residuals: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Give the tangents of the outputs: those of the floating ones by `linear_p`, the others zero."""
    moved = dict(zip(derivative.floating, bind_linear(derivative, residuals, tangents)))
    return [moved[i] if i in moved else zero_of(y) for i, y in enumerate(outputs)]


def bind_linear(derivative: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Bind `linear_p`: one tangent, or a zero, per input."""
    moving = [i for i, tangent in enumerate(tangents) if moves(tangent)]
    bound = dataclasses.replace(derivative, moving=tuple(moving), count=len(residuals))
    return list(linear_p.bind(*residuals, *[tangents[i] for i in moving], derivative=bound))


def bind_outputs(
    derivative: Derivative, outputs: Sequence[Any], residuals: Sequence[Any], inputs: Sequence[Any]
) -> list[Any]:
    """Bind `output_p`: give the outputs of a run as results of its rule."""
    counts = len(outputs), len(residuals)
    return list(output_p.bind(*outputs, *residuals, *inputs, derivative=derivative, counts=counts))


def zero_of(value: Any) -> Any:
    """Make the symbolic zero that stands for a tangent of a value."""
    return ad.Zero(jax.typeof(value).to_tangent_aval())


def moves(tangent: Any) -> bool:
    """Tell whether something is a tangent of a floating or complex value, and not a zero."""
    return type(tangent) is not ad.Zero and getattr(tangent, "dtype", None) != jax.dtypes.float0


def along(
    run: Callable[[list[Any]], list[Any]],
    values: Sequence[Any],
    places: Sequence[int],
    changes: Sequence[Any],
) -> list[Any]:
    """Differentiate a function of a list of arrays along changes of some of them."""

    def of_some(*given: Any) -> list[Any]:
        full = list(values)
        for i, value in zip(places, given):
            full[i] = value
        return run(full)

    return list(jax.jvp(of_some, [values[i] for i in places], list(changes))[1])


# ── linear_p ─────────────────────────────────────────────────────────────────────────────────────────────


@linear_p.def_impl
def _linear_impl(*operands: Any, derivative: Derivative) -> list[Any]:
    return list(map(typed, derivative(operands), derivative.outputs))


@linear_p.def_abstract_eval
def _linear_abstract_eval(*_: Any, derivative: Derivative) -> list[Any]:
    return list(derivative.outputs)


def _linear_transpose(cotangents: Sequence[Any], *operands: Any, derivative: Derivative) -> list[Any]:
    residuals, tangents = operands[: derivative.count], operands[derivative.count :]
    pulled: list[Any] = [None] * len(tangents)
    if not all(type(c) is ad.Zero for c in cotangents):  # nobody asks for what nothing flows into
        given = list(map(ad.instantiate_zeros, cotangents))
        pulled = derivative.vjp(residuals, given)
        if derivative.operation.order == 1:
            pulled = _forbid(derivative.operation, pulled, [*residuals, *given])
    results: list[Any] = [None] * len(residuals)
    for cotangent, tangent in zip(pulled, tangents):
        if not ad.is_undefined_primal(tangent):
            results.append(None)
        elif cotangent is None:
            results.append(ad.Zero(tangent.aval))
        else:
            fits = jax.typeof(cotangent) == tangent.aval
            results.append(cotangent if fits else typed(cotangent, tangent.aval))
    return results


def _forbid(operation: Operation | Named, results: list[Any], sources: Sequence[Any]) -> list[Any]:
    """Make a derivative of these results an error, also where the body cut them off from their sources."""
    given = [result for result in results if result is not None]
    refusal = _last_order(operation, [jax.typeof(result).to_tangent_aval() for result in given])
    bound = iter(bind_outputs(refusal, given, (), [*given, *sources]))
    return [None if result is None else next(bound) for result in results]


def _last_order(operation: Operation | Named, types: Sequence[Any]) -> Derivative:
    """Make the derivative of results that have none; it says so to whoever needs it."""
    refuse = Refuse(functools.partial(refusals.second_order, operation))
    return Derivative(operation, refuse, refuse, tuple(types), tuple(range(len(types))))


def _linear_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, derivative: Derivative) -> Any:
    count = derivative.count
    outputs = linear_p.bind(*primals, derivative=derivative)
    results = list(map(ad.Zero, derivative.outputs))
    if any(type(t) is not ad.Zero for t in tangents[count:]):
        given = map(ad.instantiate_zeros, tangents[count:])
        results = linear_p.bind(*primals[:count], *given, derivative=derivative)
    moving = [i for i in range(count) if type(tangents[i]) is not ad.Zero]
    if moving:
        changes = [tangents[i] for i in moving]
        if derivative.operation.order == 1:
            moved = bind_linear(_last_order(derivative.operation, derivative.outputs), (), changes)
        else:
            moved = _change(derivative, moving, [*primals[:count], *changes], primals[count:])
        results = list(map(ad.add_tangents, results, moved))
    return outputs, results


def _change(
    derivative: Derivative, moving: list[int], residuals: list[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Differentiate what is pushed along a change of some residuals, which stands behind all of them.

    That of a transpose is the transpose of the pullback's own, which knows a second order that was given.
    """
    if not derivative.transposes:
        return _Along(derivative.jvp, moving, derivative.count)(residuals, tangents)
    # The change is handed on as a residual: while the map is judged, numbers stand for it.
    pull = _Along(derivative.pull, moving, derivative.count)
    return dataclasses.replace(derivative, pull=pull).jvp(residuals, tangents)


@dataclasses.dataclass(frozen=True, eq=False)
class _Along:
    """How what a map gives changes with some of its residuals."""

    move: Move
    moving: list[int]
    count: int

    def __call__(self, residuals: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        before, changes = residuals[: self.count], residuals[self.count :]
        return along(lambda full: self.move(full, given), before, self.moving, changes)


def _linear_batch(axis: Any, operands: Any, dims: Any, *, derivative: Derivative) -> list[Any]:
    """Bind the primitive again, over batches: what it does to one example is done to each."""
    count = derivative.count
    residuals, axes = fronts(axis, operands[:count], dims[:count])
    tangents = [front(axis, x, dim) for x, dim in zip(operands[count:], dims[count:])]
    return list(linear_p.bind(*residuals, *tangents, derivative=derivative.batched(axis, axes)))


ad.primitive_jvps[linear_p] = _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose
register(linear_p, _linear_batch)
mlir.register_lowering(linear_p, mlir.lower_fun(_linear_impl, multiple_results=True))


# ── output_p ─────────────────────────────────────────────────────────────────────────────────────────────


def _output_impl(*operands: Any, derivative: Derivative, counts: tuple[int, int]) -> list[Any]:
    return list(operands[: counts[0]])


def _split(values: Sequence[Any], counts: tuple[int, int]) -> tuple[Any, Any, Any]:
    first, second = counts[0], sum(counts)
    return values[:first], values[first:second], values[second:]


def _output_jvp(primals: Any, tangents: Any, *, derivative: Derivative, counts: tuple[int, int]) -> Any:
    outputs, residuals, inputs = _split(primals, counts)
    outputs = bind_outputs(derivative, outputs, residuals, inputs)
    return outputs, tangents_of(derivative, outputs, residuals, _split(tangents, counts)[2])


def _output_batch(axis: Any, operands: Any, dims: Any, *, derivative: Derivative, counts: Any) -> list[Any]:
    outputs, residuals, inputs = _split(list(zip(operands, dims)), counts)
    moved, axes = fronts(axis, [x for x, _ in residuals], [dim for _, dim in residuals])
    outputs, inputs = ([front(axis, *pair) for pair in part] for part in (outputs, inputs))
    return bind_outputs(derivative.batched(axis, axes), outputs, moved, inputs)


output_p.def_impl(_output_impl)
output_p.def_abstract_eval(_output_impl)
ad.primitive_jvps[output_p] = _output_jvp
register(output_p, _output_batch)
mlir.register_lowering(output_p, lambda _, *operands, **params: _output_impl(*operands, **params))
