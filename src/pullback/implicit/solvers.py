"""Solving A·x = b when A is only known by what it does to a vector.

dense     A written out, column by column; tells a singular one. For small systems.
cg        conjugate gradients (Hestenes and Stiefel 1952): A symmetric, and positive or negative definite.
bicgstab  van der Vorst 1992: any A, short recurrences.
gmres     the least residual over each 20 directions, for any A; see `gmres.py`.

Each is a few lines over `vectors.py`, the same on every host; loops and claims are the host's. What is given
back by an iteration satisfies ‖A·x − b‖ ≤ accuracy·‖b‖, by the true residual, or is an error. Where nobody
says how exact, it is so as far as the dtype allows: the residual is roundoff, or stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pullback.errors import SolutionError
from pullback.hosts.base import Host
from pullback.hosts.claims import Claim
from pullback.hosts.operation import Tensor
from pullback.implicit.equation import Multiply
from pullback.implicit.gmres import gmres
from pullback.implicit.vectors import Space, Vector
from pullback.options import require_number, require_word

SMALL = 32  # numbers; up to here writing A out costs no more than the directions of `gmres`
METHODS = ("auto", "dense", "cg", "gmres", "bicgstab")

State = list[Tensor]
# (space, A, b, the length of the residual to reach, iterations): x comes first, the iterations used last
Iterate = Callable[[Space, Multiply, Vector, Tensor, Tensor], State]


@dataclass(frozen=True)
class Means:
    """How linear systems are solved."""

    method: str = "auto"
    accuracy: float | None = None  # of the residual, relative to b; None: by the dtype
    iterations: int = 1000

    def check(self, verb: str) -> Means:
        """Refuse what cannot be meant."""
        require_word(verb, "method", self.method, METHODS)
        require_number(verb, "accuracy", self.accuracy, least=0, above=True, fix="accuracy=1e-8")
        require_number(verb, "iterations", self.iterations, least=1, fix="iterations=1000")
        return self

    def chosen(self, size: int | None, symmetric: bool) -> str:
        """Choose a method for a system of so many numbers."""
        if self.method != "auto":
            return self.method
        return "dense" if size is not None and size <= SMALL else "cg" if symmetric else "gmres"


def solve(host: Host, given: Multiply, b: Vector, symmetric: bool, means: Means, where: str) -> Vector:
    """Solve A·x = b; nothing of it is differentiated."""
    space = Space(host, b)
    size = space.size
    if size == 0:
        return space.shaped(space.zeros())
    b = space.flat(b)

    def multiply(x: Vector) -> Vector:
        return space.flat(given(space.shaped(x)))

    method = means.chosen(size, symmetric)
    if method == "dense":
        return space.shaped(_dense(space, multiply, b, where))
    length = space.norm(b)
    goal = length * (means.accuracy or 8 * space.roundoff)
    allowed = length * (means.accuracy or _pass(space))  # a rounded A·x may stand still above the goal
    x, off = _refined(space, _ITERATIVE[method], multiply, b, goal, means.iterations)

    def error(residual: str, allowed: str) -> Exception:
        return _unsolved(where, method, residual, allowed, means)

    claim = Claim("linear_solve", where, error)
    return host.require(claim, off <= allowed, [off, allowed], space.shaped(x))


def _unsolved(where: str, method: str, residual: str, allowed: str, means: Means) -> SolutionError:
    return SolutionError.about(
        where,
        found=f"a linear system was not solved by {method}: ‖A·x − b‖ is {residual}",
        expected=f"at most {allowed}, within {means.iterations} iterations",
        why="a derivative of a solution solves such a system: where ∂F/∂z is singular there is none",
        fix='iterations= or accuracy=, another method= ("cg" needs a symmetric definite A),\n'
        "or a condition with an isolated solution",
    )


# ── dense ────────────────────────────────────────────────────────────────────────────────────────────────


def _dense(space: Space, multiply: Multiply, b: Vector, where: str) -> Vector:
    """Write A out, and solve by its singular values."""
    xp, size = space.xp, space.size
    if size is None:
        raise SolutionError.about(
            where,
            found='method="dense", and a solution whose shape is not known',
            expected="a known number of unknowns",
            fix='method="gmres", or give the arguments a known shape',
        )
    places = xp.arange(size)

    def column(i: Any, found: list[Tensor]) -> list[Tensor]:
        at = xp.astype(places == i, space.wide)
        product = space.row(multiply(space.vector(at)))
        return [found[0] + xp.expand_dims(product, axis=1) * xp.expand_dims(at, axis=0)]

    row = space.row(b)
    empty = xp.zeros_like(xp.expand_dims(row, axis=1) * xp.expand_dims(row, axis=0))
    (matrix,) = space.host.repeat(size, column, [empty])
    x, least = _eliminated(space, matrix, row)

    def error(least: str, allowed: str) -> Exception:
        return SolutionError.about(
            where,
            found=f"a linear system is singular: its least pivot is {least}, with rows and columns of size 1",
            expected=f"an invertible A, which for a condition is ∂F/∂z: more than {allowed}",
            why="the solution is not isolated there, and has no derivative",
            fix="a condition with an isolated solution: add a regularisation, or fix what is free",
        )

    claim, allowed = Claim("linear_solve", where, error), 4 * size * space.roundoff * xp.ones_like(least)
    return space.host.require(claim, least > allowed, [least, allowed], space.vector(x))


def _eliminated(space: Space, matrix: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
    """Solve by Gauss and Jordan, the largest pivot first, rows and columns scaled; give the least pivot too.

    Written out, because a host's own solver raises what it likes, or divides by zero without a word.
    """
    xp, size = space.xp, row.shape[0]
    rows = _nonzero(xp, xp.max(xp.abs(matrix), axis=1))
    matrix, row = matrix / xp.expand_dims(rows, axis=1), row / rows
    columns = _nonzero(xp, xp.max(xp.abs(matrix), axis=0))
    matrix = matrix / xp.expand_dims(columns, axis=0)
    places = xp.arange(size)

    def step(k: Any, state: list[Tensor]) -> list[Tensor]:
        matrix, row, order, free, least = state
        here = xp.astype(places == k, space.wide)
        column = xp.sum(matrix * xp.expand_dims(here, axis=0), axis=1)
        at = xp.astype(places == xp.argmax(xp.abs(column) * free - (1 - free)), space.wide)
        pivot = xp.sum(at * column)
        over = _nonzero(xp, pivot)
        chosen, value = xp.sum(xp.expand_dims(at, axis=1) * matrix, axis=0) / over, xp.sum(at * row) / over
        factors = column - at * (pivot - 1)  # 1 keeps its own row out of the subtraction, below
        matrix = matrix - xp.expand_dims(factors, axis=1) * xp.expand_dims(chosen, axis=0)
        matrix = xp.where(xp.expand_dims(at > 0, axis=1), xp.expand_dims(chosen, axis=0), matrix)
        row = xp.where(at > 0, value, row - factors * value)
        order = order + xp.expand_dims(here, axis=1) * xp.expand_dims(at, axis=0)
        return [matrix, row, order, free - at, xp.minimum(least, xp.abs(pivot))]

    start = [matrix, row, xp.zeros_like(matrix), xp.ones_like(row), xp.ones_like(xp.sum(row))]
    _, row, order, _, least = space.host.repeat(size, step, start)
    return xp.sum(order * xp.expand_dims(row, axis=0), axis=1) / columns, least


def _nonzero(xp: Any, x: Tensor) -> Tensor:
    return xp.where(x != 0, x, xp.ones_like(x))


# ── iterative ────────────────────────────────────────────────────────────────────────────────────────────


def _pass(space: Space) -> float:
    """Tell how far a recurrence is trusted: by what factor one pass may take the residual off."""
    return float(space.roundoff**0.6)


def _refined(
    space: Space, iterate: Iterate, multiply: Multiply, b: Vector, goal: Tensor, iterations: int
) -> tuple[Vector, Tensor]:
    """Solve A·x = b, then A·d = b − A·x for what is left, and so on; give x and ‖A·x − b‖.

    Each pass begins with the true residual, from which a recurrence drifts. The last one that does not halve
    it ends it: that is the floor of the dtype, or no way down.
    """
    xp, n = space.xp, len(b)

    def going(state: list[Tensor]) -> Tensor:
        off, before, count = state[2 * n :]
        return (off > goal) & (off < before / 2) & (count < iterations)

    def step(state: list[Tensor]) -> list[Tensor]:
        x, r = state[:n], state[n : 2 * n]
        off, _, count = state[2 * n :]
        target = xp.maximum(goal, off * _pass(space)) / 4
        found = iterate(space, multiply, r, target, iterations - count)
        moved = [u + v for u, v in zip(x, found[:n])]
        left = space.minus(b, multiply(moved))
        now = space.norm(left)
        better = now < off  # not so where it is NaN
        kept = [xp.where(better, new, old) for new, old in zip([*moved, *left, now], [*x, *r, off])]
        return [*kept, off, count + found[-1]]

    off = space.norm(b)
    start = [*space.zeros(), *b, off, xp.ones_like(off) * float("inf"), xp.zeros_like(off)]
    state = space.host.loop(going, step, start)
    return state[:n], state[2 * n]


def _cg(space: Space, multiply: Multiply, b: Vector, target: Tensor, iterations: Tensor) -> State:
    xp, n = space.xp, len(b)

    def going(state: list[Tensor]) -> Tensor:
        return (xp.sqrt(state[-2]) > target) & (state[-1] < iterations)

    def step(state: list[Tensor]) -> list[Tensor]:
        x, r, p = state[:n], state[n : 2 * n], state[2 * n : 3 * n]
        rr, count = state[3 * n :]
        product = multiply(p)
        alpha = rr / space.dot(p, product)
        x, r = space.plus(x, alpha, p), space.plus(r, -alpha, product)
        now = space.dot(r, r)
        return [*x, *r, *space.plus(r, now / rr, p), now, count + 1]

    rr = space.dot(b, b)
    return space.host.loop(going, step, [*space.zeros(), *b, *b, rr, xp.zeros_like(rr)])


def _bicgstab(space: Space, multiply: Multiply, b: Vector, target: Tensor, iterations: Tensor) -> State:
    xp, n = space.xp, len(b)

    def going(state: list[Tensor]) -> Tensor:
        return (space.norm(state[n : 2 * n]) > target) & (state[-1] < iterations)

    def step(state: list[Tensor]) -> list[Tensor]:
        x, r, p = state[:n], state[n : 2 * n], state[2 * n : 3 * n]
        rho, count = state[3 * n :]
        v = multiply(p)
        alpha = rho / space.dot(b, v)
        s = space.plus(r, -alpha, v)
        t = multiply(s)
        tt = space.dot(t, t)
        omega = xp.where(tt > 0, space.dot(t, s) / xp.where(tt > 0, tt, xp.ones_like(tt)), xp.zeros_like(tt))
        x = space.plus(space.plus(x, alpha, p), omega, s)
        r = space.plus(s, -omega, t)
        now = space.dot(b, r)
        ratio = now / rho * alpha / xp.where(omega != 0, omega, xp.ones_like(omega))
        beta = xp.where(omega != 0, ratio, xp.zeros_like(ratio))
        p = space.plus(r, beta, space.plus(p, -omega, v))
        return [*x, *r, *p, now, count + 1]

    rho = space.dot(b, b)
    return space.host.loop(going, step, [*space.zeros(), *b, *b, rho, xp.zeros_like(rho)])


_ITERATIVE = {"cg": _cg, "bicgstab": _bicgstab, "gmres": gmres}
