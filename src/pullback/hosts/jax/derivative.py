"""The derivative of one run of a rule, as a value: what the primitives of `linear_p.py` are bound with.

It holds functions as objects of small classes: JAX's caches hold what can be called weakly, and a run lives
as long as who differentiates it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import unmapped_aval

from pullback.hosts.jax.batched import over_axis
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
    push: Callable[[Derivative, Sequence[Any], Sequence[Any]], list[Any]]
    outputs: tuple[Any, ...]  # the types of the tangents of the floating outputs
    floating: tuple[int, ...] = ()  # which outputs these are
    inputs: int = 0  # how many inputs there are
    kept: int = 0  # of the residuals: how many are the inputs, and outputs behind them
    transposes: bool = False  # whether `push` is the transpose of `pull`
    moving: tuple[int, ...] = ()  # the inputs that have tangents
    count: int = 0  # of the residuals
    # per residual: the program that takes it, and where
    takers: tuple[tuple[Any, int] | None, ...] = dataclasses.field(default=(), repr=False)

    def __call__(self, operands: Sequence[Any]) -> list[Any]:
        return self.jvp(operands[: self.count], operands[self.count :])

    def jvp(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Give a tangent per floating output."""
        return self.push(self, list(map(array, residuals)), list(map(array, tangents)))

    def vjp(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Give a cotangent, or None, per moving input."""
        got = self.pull(list(map(array, residuals)), list(map(array, cotangents)))
        return list(map(got.__getitem__, self.moving))

    def batched(self, axis: Any, axes: list[int | None]) -> Derivative:
        """Give the derivative of a batch of runs; `axes` tell which residuals have one, at the front."""
        types = tuple(unmapped_aval(axis.size, 0, kind, axis.explicit_mesh_axis) for kind in self.outputs)
        batch = _Batch(self, axis, axes)
        push = self.push if self.transposes else batch.push
        return dataclasses.replace(self, pull=batch.pull, push=push, outputs=types)


@dataclasses.dataclass(frozen=True, eq=False)
class _Batch:
    """The derivative of one run, for each run of a batch."""

    one: Derivative
    axis: Any
    axes: list[int | None]

    def pull(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return list(over_axis(self.axis, self.one.pull, [self.axes, 0])(list(residuals), list(cotangents)))

    def push(self, batched: Derivative, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        one = dataclasses.replace(self.one, moving=batched.moving, count=batched.count)
        return list(over_axis(self.axis, one.jvp, [self.axes, 0])(list(residuals), list(tangents)))


@dataclasses.dataclass(frozen=True, eq=False)
class Refuse:
    """Raise an error when a derivative is needed: JAX carries along some that nobody uses."""

    error: Callable[[], Exception]

    def __call__(self, *_: Any) -> Any:
        raise self.error()


def array(value: Any) -> Any:
    """Make an array of a number: JAX has some of its own, which know less than an array."""
    return value if isinstance(value, jax.Array) else jnp.asarray(value)
