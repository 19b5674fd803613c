"""`checkpoint_scan`: a loop that keeps few of its states, and computes the others again.

It is made of loops and checkpoints alone, so all that holds for these holds for it: higher derivatives,
forward mode, captured variables, random numbers. Two schedules: with states kept at the borders of √T
segments and inside the one that is gone back through, every step runs once more; with `slots` states, the
binomial one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from pullback import hosts, tree
from pullback.errors import NoTensorError, OptionError, UnsupportedInputError
from pullback.hosts import Role
from pullback.hosts.base import Host
from pullback.hosts.numpy import HOST as NUMPY
from pullback.namespace import namespace
from pullback.options import require_functions
from pullback.plan import plan
from pullback.recompute import framework, schedule
from pullback.recompute.framework import Tensors
from pullback.rule import EXACT, rule_of, where_of
from pullback.unconverted import unconverted

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


@unconverted
def checkpoint_scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any = None,
    *,
    length: int | None = None,
    slots: int | None = None,
) -> tuple[Any, Any]:
    """Run a step over and over, and keep few of its states for the gradient.

    Of T states, about 2·√T are kept, and every step runs twice before its gradient. With `slots`, that many
    are kept beside the first, and the binomial schedule runs the fewest steps that are possible. Random
    numbers are the same in every run; variables and tensors that `step` closes over get their gradients.

    Args:
        step: Takes the carry and a row of `xs`, and gives the next carry and an output, or None.
        carry: The first carry: tensors in any structure.
        xs: Tensors in any structure, with the rows of the steps along their first axis.
        length: How many steps; needed where there are no `xs`.
        slots: How many states may be kept. A compiler is handed a program that grows as slots shrink.

    Example:
        >>> import numpy as np, pullback as pb
        >>> total, sums = pb.checkpoint_scan(lambda c, x: (c + x, c + x), np.zeros(1), np.ones((3, 1)))
        >>> total.tolist(), sums.ravel().tolist()
        ([3.0], [1.0, 2.0, 3.0])

    Do not use it where all states fit into memory: what is kept need not be computed again.
    """
    require_functions("checkpoint_scan", "pb.checkpoint_scan(step, carry, xs)", step=step)
    flat = _flat(step, carry, xs, length)
    if slots is not None and (isinstance(slots, bool) or not isinstance(slots, int) or slots < 0):
        raise OptionError.about(
            "checkpoint_scan", found=f"slots={slots!r}", expected="a number of states", fix="slots=10"
        )
    if flat.length == 0:
        return carry, flat.nothing()
    last, ys = _by_sides(flat) if slots is None else _by_cuts(flat, schedule.cut(flat.length, slots))
    return tree.unflatten(flat.carry_tree, last), flat.outputs(ys)


class _Flat(NamedTuple):
    """A scan whose carry, rows and outputs are flat lists of tensors."""

    step: Function
    where: str
    host: Host
    carry: Tensors
    carry_tree: tree.Tree | None
    xs: Tensors
    xs_tree: tree.Tree | None
    length: int
    made: list[tree.Tree | None]  # the structure of an output, once a step ran

    def one(self, carry: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        """Run one step, and hold its carry against the one that it was given."""
        given = tree.unflatten(self.carry_tree, carry) if carry else None
        x = tree.unflatten(self.xs_tree, row) if row else None
        returned = self.host.run(self.step, (given, x), {}, self.where)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise self._refusal(
                f"the step returned a {type(returned).__name__}", "the next carry, and an output"
            )
        after = tree.match(self.carry_tree, returned[0])
        if after is None or any(leaf is None for leaf in after):
            raise self._refusal(
                "the step returned a carry of another structure", "the structure of the carry"
            )
        for old, new in zip(carry, after):
            have, want = self.host.spec(new), self.host.spec(old)
            if str(have) != str(want):
                raise self._refusal(
                    f"the step made {have} of a carry that is {want}", "the same shape and dtype"
                )
        ys, structure = tree.flatten(returned[1]) if returned[1] is not None else ([], None)
        self.made[:] = [structure]
        return after, ys

    def _refusal(self, found: str, expected: str) -> UnsupportedInputError:
        return UnsupportedInputError.about(
            self.where, found=found, expected=expected, fix="def step(carry, x):\n    …\n    return carry, y"
        )

    def outputs(self, ys: Tensors) -> Any:
        return tree.unflatten(self.made[0], ys) if ys else None

    def nothing(self) -> Any:
        """Give the outputs of no steps: run one on zeros for their shapes."""
        xp = namespace(*self.carry)
        _, ys = self.one(self.carry, [xp.zeros(tuple(x.shape[1:]), dtype=x.dtype) for x in self.xs])
        return self.outputs([xp.zeros((0, *y.shape), dtype=y.dtype) for y in ys])


def _flat(step: Function, carry: Any, xs: Any, length: int | None) -> _Flat:
    leaves, carry_tree = tree.flatten(carry)
    rows, xs_tree = tree.flatten(xs) if xs is not None else ([], None)
    where = where_of(step)
    roles = [hosts.role(type(leaf)) for leaf in (*leaves, *rows)]
    owned = [role for role in roles if not isinstance(role, Role)]
    if not leaves or any(role is Role.STATIC for role in roles):
        raise NoTensorError.about(
            where,
            found="the carry or the rows hold what is no tensor" if leaves else "an empty carry",
            expected="tensors in any structure",
            fix="pb.checkpoint_scan(step, tf.zeros([8]), xs)",
        )
    host = owned[0] if owned else NUMPY
    leaves = [host.tensor(leaf, where=where, argument="carry") for leaf in leaves]
    rows = [host.tensor(row, where=where, argument="xs") for row in rows]
    lengths = {int(row.shape[0]) if len(row.shape) else -1 for row in rows}
    found = next(iter(lengths), length)
    if found is None or found < 0 or lengths - {found} or (length is not None and length != found):
        shapes = ", ".join(str(tuple(row.shape)) for row in rows) or "no xs"
        raise UnsupportedInputError.about(
            where,
            found=f"xs of shapes {shapes}, and length={length}",
            expected="one number of steps: the first axis of every tensor in xs, or length=",
            fix="pb.checkpoint_scan(step, carry, length=100)",
        )
    return _Flat(step, where, host, leaves, carry_tree, rows, xs_tree, found, [])


def _again(function: Function, *args: Any, looped: bool) -> Any:
    """Call a function of lists of tensors, and run it again for its gradient."""
    made, tensors = plan(rule_of(function, EXACT), args, {})
    return framework.of(made.host).checkpoint(made, tensors, looped=looped)


def _run(flat: _Flat, carry: Tensors, xs: Tensors, length: int) -> tuple[Tensors, Tensors]:
    """Run steps in a loop that keeps the states between them."""

    def kept(carry: Tensors, row: Tensors) -> Any:
        return _again(flat.one, carry, row, looped=True)

    return framework.of(flat.host).scan(unconverted(kept), carry, xs, length)


def _by_sides(flat: _Flat) -> tuple[Tensors, Tensors]:
    """Keep the states between segments, and those inside one of them."""
    side = schedule.side(flat.length)
    count, rest = divmod(flat.length, side)
    xp = namespace(*flat.carry)
    speaking = framework.of(flat.host)

    def segment(carry: Tensors, xs: Tensors, size: int = side) -> Any:
        return _run(flat, carry, xs, size)

    def kept(carry: Tensors, xs: Tensors) -> Any:
        return _again(unconverted(segment), carry, xs, looped=True)

    parts = [speaking.split(x, [count * side, rest]) if rest else [x] for x in flat.xs]
    squares = [xp.reshape(part[0], (count, side, *part[0].shape[1:])) for part in parts]
    carry, ys = speaking.scan(unconverted(kept), flat.carry, squares, count)
    ys = [xp.reshape(y, (count * side, *y.shape[2:])) for y in ys]
    if rest:
        carry, more = _again(unconverted(segment), carry, [p[1] for p in parts], rest, looped=False)
        ys = [xp.concat([a, b], axis=0) for a, b in zip(ys, more)]
    return carry, ys


def _by_cuts(flat: _Flat, cut: schedule.Cut) -> tuple[Tensors, Tensors]:
    """Keep the states that the binomial schedule says."""
    sizes = schedule.sizes(cut)
    columns = [framework.of(flat.host).split(x, sizes) for x in flat.xs]
    pieces = [[column[i] for column in columns] for i in range(len(sizes))]

    def through(carry: Tensors, pieces: list[Tensors], cut: schedule.Cut) -> Any:
        if isinstance(cut, int):
            carry, ys = _run(flat, carry, pieces[0], cut)
            return carry, [ys]
        count = len(schedule.sizes(cut[0]))
        carry, ys = _again(unconverted(through), carry, pieces[:count], cut[0], looped=False)
        carry, more = through(carry, pieces[count:], cut[1])
        return carry, [*ys, *more]

    carry, runs = through(flat.carry, pieces, cut)
    xp = namespace(*flat.carry)
    return carry, [xp.concat(list(column), axis=0) for column in zip(*runs)]
