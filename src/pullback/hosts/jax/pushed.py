"""The primitive `pushed`: the derivative of one run of a rule, as a linear map that JAX can transform.

It takes residuals and tangents of the inputs to tangents of the outputs. Its transpose is the user's
pullback, called as it stands, so reverse mode asks nothing of it. Its value is the user's pushforward, or the
transpose of the pullback, so forward mode asks that it be linear. Whatever JAX does to a program between the
two, a loop, a branch, a batch, moves the primitive along and leaves the choice open (`transforms.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive, unmapped_aval
from jax.extend.core.primitives import convert_element_type_p
from jax.interpreters import ad, batching

from pullback.hosts.jax import forward, varying
from pullback.hosts.operation import Operation
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
