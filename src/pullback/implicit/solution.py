"""The rule of a solution: values that somebody else computed, with the derivatives of what they solve.

The operation is (z, p) ↦ z, a graft. No solver is ever differentiated, nor run again. In its derivatives z
stands as a result of this same operation, and linear systems are solved by it too, so every order is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.hosts.operation import Tensor
from pullback.implicit.equation import Equation, LinearEquation, Map, Tensors
from pullback.implicit.solvers import Means, solve
from pullback.outputs import LONE, Outputs
from pullback.plan import Plan
from pullback.replace.graft import Graft


class Solved(Graft):
    """The operation (z, p) ↦ z of one call."""

    def __init__(
        self, plan: Plan, equation: Equation, means: Means, count: int, form: Outputs = LONE
    ) -> None:
        super().__init__(plan, form, count, pull)
        self.equation = equation
        self.means = means
        self.has_pushforward = True

    def again(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        # No circle: forward mode is given, and whoever pulls or pushes stands one derivative further out.
        return self.host.apply(self, list(tensors))

    def pushforward(self, tensors: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor]:
        """Give dz = −A⁻¹·B·dp."""
        host, z, p = self.host, self.again(tensors), list(tensors[self.count :])
        moved = [host.zeros(host.outline(x)) if t is None else t for x, t in zip(p, tangents[self.count :])]
        of, at = self.equation.linearised(z, p)
        pushed = self.equation.forth(z, p, moved)
        return linear(self.plan, of, at, [-t for t in pushed], self.means)


def pull(graft: Graft, tensors: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Any]:
    """Give p̄ = −Bᵀ·u, where Aᵀ·u = z̄; no cotangent goes to the values."""
    assert isinstance(graft, Solved)
    z, p = graft.again(tensors), list(tensors[graft.count :])
    of, at = graft.equation.linearised(z, p)
    u = linear(graft.plan, of.transposed, at, list(cotangents), graft.means)
    return [None] * graft.count + graft.equation.back(z, p, [-x for x in u])


def linear(plan: Plan, of: Map, at: Tensors, b: Tensors, means: Means) -> Tensors:
    """Solve a linear system, as an operation with derivatives."""
    host = plan.host
    equation = LinearEquation(host, of, len(b))
    stopped = host.stopped(at)
    right = [host.arrays.stop(x) for x in b]
    values = solve(host, of.forth(stopped), right, of.symmetric, means, plan.where)
    values = [host.arrays.stop(x) for x in values]
    return host.apply(Solved(plan, equation, means, len(b)), [*values, *b, *at])
