"""Equations F(z, p) = 0, and the linear maps that their derivatives are.

With A = ∂F/∂z and B = ∂F/∂p at a solution:   dz = −A⁻¹·B·dp     p̄ = −Bᵀ·u  where  Aᵀ·u = z̄

So a derivative of a solution is the solution of a linear equation, A·x − b = 0, and its derivatives in turn
are the same two lines. One rule, of `solution.py`, therefore gives every order. Maps are linear over the
reals, with the inner product Re Σ conj(a)·b, in which a vjp is the transpose: conditions on complex numbers
need not be holomorphic. Everything is a flat list of tensors here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.hosts.base import Host
from pullback.hosts.operation import Tensor

Tensors = list[Tensor]
Multiply = Callable[[Tensors], Tensors]


@dataclass(frozen=True)
class Map:
    """A linear map and its transpose, each given its parameters first, so that many products share them."""

    forth: Callable[[Tensors], Multiply]
    back: Callable[[Tensors], Multiply]
    symmetric: bool = False

    @property
    def transposed(self) -> Map:
        return Map(self.back, self.forth, self.symmetric)


@dataclass(eq=False)
class Equation:
    """An equation F(z, p) = 0 in z."""

    host: Host
    residual: Callable[[Tensors, Tensors], Tensors]
    symmetric: bool = False  # whether ∂F/∂z is

    def linearised(self, z: Tensors, p: Tensors) -> tuple[Map, Tensors]:
        """Give v ↦ ∂F/∂z·v, and the tensors that it depends on."""
        host, residual, count = self.host, self.residual, len(z)

        def back(at: Tensors) -> Multiply:
            return host.pullback(lambda *z: residual(list(z), at[count:]), at[:count])

        def forth(at: Tensors) -> Multiply:
            return host.pushforward(lambda *z: residual(list(z), at[count:]), at[:count])

        return Map(back if self.symmetric else forth, back, self.symmetric), [*z, *p]

    def back(self, z: Tensors, p: Tensors, u: Tensors) -> list[Any]:
        """Give ∂F/∂pᵀ·u: a cotangent, or None, per parameter."""
        moving, function = self._of_moving(z, p)
        found = iter(self.host.vjp(function, [p[i] for i in moving], u) if moving else ())
        return [next(found) if i in moving else None for i in range(len(p))]

    def forth(self, z: Tensors, p: Tensors, tangents: Sequence[Any]) -> Tensors:
        """Give ∂F/∂p·dp."""
        moving, function = self._of_moving(z, p)
        return self.host.pushforward(function, [p[i] for i in moving])([tangents[i] for i in moving])

    def _of_moving(self, z: Tensors, p: Tensors) -> tuple[list[int], Callable[..., Tensors]]:
        """Give F as a function of the parameters that a gradient can flow to."""
        moving = [i for i, tensor in enumerate(p) if self.host.differentiable(tensor)]

        def function(*given: Tensor) -> Tensors:
            full = list(p)
            for i, tensor in zip(moving, given):
                full[i] = tensor
            return self.residual(z, full)

        return moving, function


class LinearEquation(Equation):
    """The equation A(q)·x − b = 0, with the parameters b and q."""

    def __init__(self, host: Host, of: Map, count: int) -> None:
        super().__init__(host, self._residual, of.symmetric)
        self.of = of
        self.count = count  # of the tensors in b

    def _residual(self, x: Tensors, p: Tensors) -> Tensors:
        return [y - b for y, b in zip(self.of.forth(p[self.count :])(x), p[: self.count])]

    def linearised(self, z: Tensors, p: Tensors) -> tuple[Map, Tensors]:
        return self.of, p[self.count :]
