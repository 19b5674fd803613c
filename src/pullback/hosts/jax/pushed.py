"""The primitive `pushed`: the derivative of one run of a rule, as a linear map that JAX can transform.

It takes residuals and tangents of the inputs to tangents of the outputs. Its transpose is the user's
pullback, called as it stands, so reverse mode asks nothing of it. Its value is the user's pushforward, or the
transpose of the pullback, so forward mode asks that it be linear. Whatever JAX does to a program between the
two, a loop, a branch, a batch, moves the primitive along and leaves the choice open.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive, unmapped_aval
from jax.extend.core.primitives import convert_element_type_p
from jax.interpreters import ad, batching, mlir

from pullback.hosts.base import Operation
from pullback.hosts.jax import forward, order, varying
from pullback.hosts.refusals import Named

Move = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class Derivative:
    """The derivative of one run, in JAX's convention for complex numbers.

    `pull` takes residuals and a cotangent per floating output to a cotangent, or None, per input; `push`
    takes residuals and a tangent per moving input to a tangent per floating output.
    """

    operation: Operation | Named  # the name alone in a program: an operation may reach traced arrays
    pull: Move
    push: Callable[[Derivative, Sequence[Any], Sequence[Any]], list[Any]] | None  # None: by the transpose
    outputs: tuple[Any, ...]  # the types of the tangents of the floating outputs
    floating: tuple[int, ...] = ()  # which outputs these are
    inputs: int = 0  # how many inputs there are
    kept: int = 0  # of the residuals: how many are the inputs, and outputs behind them
    moving: tuple[int, ...] = ()  # those that have tangents
    count: int = 0  # of the residuals
    # per residual: the program that takes it, and where
    takers: tuple[tuple[Any, int] | None, ...] = dataclasses.field(default=(), repr=False)

    def __call__(self, *operands: Any) -> list[Any]:
        """Push. JAX's caches hold what can be called weakly: a run lives as long as who differentiates it."""
        return self.pushed(operands[: self.count], operands[self.count :])

    def pushed(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        push = forward.transposed if self.push is None else self.push
        return push(self, list(map(array, residuals)), list(map(array, tangents)))

    def pulled(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        got = self.pull(list(map(array, residuals)), list(map(array, cotangents)))
        return [got[i] for i in self.moving]


primitive = Primitive("pullback")
primitive.multiple_results = True


def tangents_of(
    derivative: Derivative, outputs: Sequence[Any], residuals: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Give the tangents of the outputs: those of the floating ones by the primitive, the others zero."""
    moved = dict(zip(derivative.floating, push(derivative, residuals, tangents)))
    return [moved[i] if i in moved else ad.Zero(tangent_type(y)) for i, y in enumerate(outputs)]


def push(derivative: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Bind the primitive: one tangent, or a zero, per input."""
    moving = tuple(i for i, tangent in enumerate(tangents) if moves(tangent))
    bound = dataclasses.replace(derivative, moving=moving, count=len(residuals))
    moved: list[Any] = primitive.bind(*residuals, *(tangents[i] for i in moving), derivative=bound)
    return moved


def array(value: Any) -> Any:
    """Make an array of a number: JAX has some of its own, which know less than an array."""
    return value if isinstance(value, jax.Array) else jnp.asarray(value)


def is_zero(tangent: Any) -> bool:
    """Tell whether JAX says that there is no tangent."""
    return type(tangent) is ad.Zero


def moves(tangent: Any) -> bool:
    """Tell whether something is a tangent of a floating or complex value, and not a zero."""
    return type(tangent) is not ad.Zero and getattr(tangent, "dtype", None) != jax.dtypes.float0


def tangent_type(value: Any) -> Any:
    """Give the type that tangents and cotangents of a value have."""
    return jax.typeof(value).to_tangent_aval()


def typed(value: Any, kind: Any) -> Any:
    """Give a value the type that JAX has for it: its axes of a mesh, and weak as a Python number is."""
    value = varying.like(value, kind)
    if value.weak_type == kind.weak_type:
        return value
    return convert_element_type_p.bind(value, new_dtype=value.dtype, weak_type=kind.weak_type, sharding=None)


def refusal(
    operation: Operation | Named,
    error: Callable[[], Exception],
    outputs: Sequence[Any],
    floating: tuple[int, ...] = (),
) -> Derivative:
    """Make a derivative that may be carried along, and raises when somebody needs it."""

    def refuse(*_: Any) -> Any:
        raise error()

    return Derivative(operation, refuse, refuse, tuple(outputs), floating)


# ── what JAX asks of a primitive ─────────────────────────────────────────────────────────────────────────


@primitive.def_impl
def _evaluate(*operands: Any, derivative: Derivative) -> list[Any]:
    return [typed(moved, kind) for moved, kind in zip(derivative(*operands), derivative.outputs)]


@primitive.def_abstract_eval
def _types(*_: Any, derivative: Derivative) -> list[Any]:
    return list(derivative.outputs)


def _transpose(cotangents: Sequence[Any], *operands: Any, derivative: Derivative) -> list[Any]:
    residuals, tangents = operands[: derivative.count], operands[derivative.count :]
    pulled: list[Any] = [None] * len(tangents)
    if not all(type(c) is ad.Zero for c in cotangents):  # nobody asks for what nothing flows into
        given = [ad.instantiate_zeros(c) for c in cotangents]
        pulled = derivative.pulled(residuals, given)
        if derivative.operation.order == 1:
            pulled = order.forbid(derivative.operation, pulled, [*residuals, *given])
    results: list[Any] = [None] * len(residuals)
    for cotangent, tangent in zip(pulled, tangents):
        if not ad.is_undefined_primal(tangent):
            results.append(None)
        elif cotangent is None:
            results.append(ad.Zero(tangent.aval))
        else:
            results.append(typed(cotangent, tangent.aval))
    return results


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, derivative: Derivative) -> Any:
    count = derivative.count
    outputs = primitive.bind(*primals, derivative=derivative)
    results = [ad.Zero(aval) for aval in derivative.outputs]
    if any(type(t) is not ad.Zero for t in tangents[count:]):
        linear = [ad.instantiate_zeros(t) for t in tangents[count:]]
        results = primitive.bind(*primals[:count], *linear, derivative=derivative)
    moving = [i for i in range(count) if type(tangents[i]) is not ad.Zero]
    if moving:
        values = [tangents[i] for i in moving]
        if derivative.operation.order == 1:
            moved = order.refused(derivative.operation, derivative.outputs, values)
        else:
            moved = _along(derivative, primals[:count], moving, values, primals[count:])
        results = [ad.add_tangents(a, b) for a, b in zip(results, moved)]
    return outputs, results


def _along(
    derivative: Derivative,
    residuals: Sequence[Any],
    moving: Sequence[int],
    values: Sequence[Any],
    tangents: Sequence[Any],
) -> list[Any]:
    """Differentiate what is pushed along a change of the residuals.

    That of a transpose is the transpose of the pullback's own, which knows a second order that was given.
    """

    def change(move: Move, given: Sequence[Any]) -> Move:
        def changed(residuals: Sequence[Any], others: Sequence[Any]) -> list[Any]:
            def run(*moved: Any) -> list[Any]:
                full = list(residuals)
                for i, residual in zip(moving, moved):
                    full[i] = residual
                return move(full, others)

            changed: list[Any] = jax.jvp(run, [residuals[i] for i in moving], list(given))[1]
            return changed

        return changed

    if derivative.push is not None:
        return change(derivative.pushed, values)(residuals, tangents)
    # The change is handed on as a residual: while the map is judged, numbers stand for it.
    count = len(residuals)

    def pull(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return change(derivative.pull, residuals[count:])(residuals[:count], cotangents)

    return dataclasses.replace(derivative, pull=pull).pushed([*residuals, *values], tangents)


def _batch(axis: Any, operands: Sequence[Any], places: Sequence[Any], *, derivative: Derivative) -> Any:
    """Bind the primitive again, over batches: what it does to one example is done to each."""
    if all(place is None for place in places):
        results = primitive.bind(*operands, derivative=derivative)
        return results, [None] * len(results)
    count = derivative.count
    residuals = [x if d is None else front(axis, x, d) for x, d in zip(operands[:count], places)]
    tangents = [front(axis, x, d) for x, d in zip(operands[count:], places[count:])]
    batched = over_batch(derivative, axis, places[:count])
    results = primitive.bind(*residuals, *tangents, derivative=batched)
    return results, [0] * len(results)


def front(axis: Any, x: Any, place: int | None) -> Any:
    """Bring the axis of the batch to the front; repeat what has none."""
    return batching.bdim_at_front(x, place, axis.size, axis.explicit_mesh_axis)


def over_axis(axis: Any, function: Callable[..., Any], axes: Sequence[Any]) -> Callable[..., Any]:
    """Map a function over the axis of a batch, under the name it has."""
    named = {} if type(axis.name) is object else {"axis_name": axis.name}  # JAX marks an unnamed axis so
    mapped: Callable[..., Any] = jax.vmap(
        function, in_axes=tuple(axes), axis_size=axis.size, spmd_axis_name=axis.spmd_name, **named
    )
    return mapped


def over_batch(derivative: Derivative, axis: Any, places: Sequence[Any]) -> Derivative:
    """Make the derivative of a batch of runs, whose residuals have the batch at the front, or nowhere."""
    axes = [None if place is None else 0 for place in places]

    def mapped(move: Move) -> Move:
        each = over_axis(axis, move, [axes, 0])
        return lambda residuals, given: each(list(residuals), list(given))

    def push(batched: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        one = dataclasses.replace(derivative, moving=batched.moving, count=batched.count)
        return mapped(one.pushed)(residuals, tangents)

    given = None if derivative.push is None else push
    types = tuple(unmapped_aval(axis.size, 0, kind, axis.explicit_mesh_axis) for kind in derivative.outputs)
    return dataclasses.replace(derivative, pull=mapped(derivative.pull), push=given, outputs=types)


ad.primitive_jvps[primitive] = _jvp
ad.primitive_transposes[primitive] = _transpose
batching.fancy_primitive_batchers[primitive] = _batch
mlir.register_lowering(primitive, mlir.lower_fun(_evaluate, multiple_results=True))
