"""GMRES: the least ‖b − A·x‖ over each 20 directions, for any A, without a small system beside it.

Adaptive simpler GMRES (Jiránek and Rozložník 2010): a direction d is the residual where the last step took
much off it, else the last q. The products A·d are made orthonormal, to Q, so that each step takes its share
off the residual. Every direction is then a sum over (r₀, Q), and so is x: coefficients are kept, and one
basis, which is what a step costs beside its product.
"""

from __future__ import annotations

from pullback.hosts.operation import Tensor
from pullback.implicit.equation import Multiply
from pullback.implicit.vectors import Space, Vector

RESTART = 20


def gmres(space: Space, multiply: Multiply, b: Vector, target: Tensor, iterations: Tensor) -> list[Tensor]:
    """Solve A·x = b until the residual is as short as asked, or a whole basis takes nothing off."""
    xp, n = space.xp, len(b)

    def going(state: list[Tensor]) -> Tensor:
        length, begun, number = state[2 * n :]
        return (length > target) & (number < iterations) & (length < (1 - 1e-6) * begun)

    def step(state: list[Tensor]) -> list[Tensor]:
        length, _, number = state[2 * n :]
        x, r, now, used = _cycle(space, multiply, state[n : 2 * n], length, target, iterations - number)
        return [*[u + v for u, v in zip(state[:n], x)], *r, now, length, number + used]

    length = space.norm(b)
    start = [*space.zeros(), *b, length, xp.ones_like(length) * float("inf"), xp.zeros_like(length)]
    return space.host.loop(going, step, start)


def _cycle(
    space: Space, multiply: Multiply, b: Vector, length: Tensor, target: Tensor, iterations: Tensor
) -> tuple[Vector, Vector, Tensor, Tensor]:
    """Take the steps of one basis: give x, what is left of b, its length, and the number of steps."""
    xp, n = space.xp, len(b)
    count = RESTART if space.size is None else min(RESTART, space.size)
    places = xp.astype(xp.arange(count + 1), space.wide)

    def going(state: list[Tensor]) -> Tensor:
        length, alive, place = state[-3:]
        return (length > target) & (place < count) & (place < iterations) & (alive > 0)

    def step(state: list[Tensor]) -> list[Tensor]:
        r, d, qs = (state[k * n : (k + 1) * n] for k in range(3))
        # of x, of r, of d, and of each P with A·P = Q: coefficients of r₀ first, then of Q
        of_x, of_r, of_d, of_p, before, _, place = state[3 * n :]
        before_q, before_p = ([space.host.arrays.first(m, place) for m in rows] for rows in (qs, [of_p]))
        q = multiply(d)
        shares = space.dots(before_q, q)  # those of a place that is not filled are zero
        q = space.minus(q, space.combined(shares, before_q))
        more = space.dots(before_q, q)  # twice, for accuracy
        q = space.minus(q, space.combined(more, before_q))
        length = space.norm(q)
        there = xp.sqrt(xp.sum((shares + more) ** 2))
        new = length > 8 * space.roundoff * (length + there)  # else A·d was there already
        factor = xp.where(new, 1 / xp.where(new, length, xp.ones_like(length)), xp.zeros_like(length))
        q = space.times(factor, q)
        of_p_now = factor * (of_d - xp.matmul(shares + more, before_p[0]))
        share = space.dot(q, r)
        r = space.plus(r, -share, q)
        left = space.norm(r)
        here = xp.where(places == place + 1, xp.ones_like(places), xp.zeros_like(places))
        of_x, of_r = of_x + share * of_p_now, of_r - share * here
        much = left < 0.9 * before
        following = [xp.where(much, u, v) for u, v in zip(r, q)]
        qs, (of_p,) = space.put(qs, place, q), space.put([of_p], place, [of_p_now])
        small = [of_x, of_r, xp.where(much, of_r, here), of_p, left, factor, place + 1]
        return [*r, *following, *qs, *small]

    first = xp.where(places == 0, xp.ones_like(places), xp.zeros_like(places))
    rows = xp.stack([xp.zeros_like(first)] * count)
    small = [xp.zeros_like(first), first, first, rows, length, xp.ones_like(length), xp.zeros_like(length)]
    state = space.host.loop(going, step, [*b, *b, *space.many(count), *small])
    of_x = state[3 * n]
    x = space.plus(space.combined(of_x[1:], state[2 * n : 3 * n]), of_x[0], b)
    return x, state[:n], state[-3], state[-1]
