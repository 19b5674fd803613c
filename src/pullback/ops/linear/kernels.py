"""What the losses ask of a host beside the array API: loops, slices, and products of a wide dtype.

A host answers in a file of its name here, which is imported when its arrays are met.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

from pullback import hosts
from pullback.hosts.base import Host

Array = Any
Carry = tuple[Array, ...]
# (first row, number of rows, carry) ↦ (carry, blocks of so many rows)
Step = Callable[[Any, Any, Carry], tuple[Carry, tuple[Array, ...]]]
Folded = tuple[Carry, tuple[Array, ...]]


class Kernels(Protocol):
    """Do in one framework what the array API has no word for."""

    HELD: int  # how many logits a processor holds at a time, where the gradient is made with the loss

    def adds_in_place(self, w: Array) -> bool:
        """Tell whether a sum of gradients of w costs little beside its terms, in time and in memory."""

    def pieces(self, w: Array, tokens: int) -> list[tuple[Any, Any]]:
        """Give where the classes are cut for so many tokens: each piece's first, and how many."""

    def at(self, w: Array, labels: Array) -> Array:
        """Give the row of w for each label, some row for one outside; asked of hosts that cut pieces."""

    def hit(self, a: Array, labels: Array, values: Array) -> Array:
        """Add each value to the row of its label, if there is one; asked of hosts that cut pieces."""

    def after(self, *arrays: Array) -> AbstractContextManager[Any]:
        """Start what is inside only when these are there, in a program that starts whatever is ready."""

    def wide(self, a: Array) -> Array:
        """Give an array in the dtype that sums are taken in: float32 for the 16-bit ones."""

    def index(self, labels: Array) -> Array:
        """Give whole numbers in a dtype that holds them all, and their differences."""

    def numbered(self, a: Array) -> Array:
        """Give the number of each row, from 0."""

    def zeros(self, x: Array) -> Array:
        """Give a zero of the wide dtype for each row."""

    def fold(self, count: Any, size: int, step: Step, carry: Carry, likes: Sequence[Array] = ()) -> Folded:
        """Go through rows in chunks, the last one shorter; give the last carry, and the blocks in a row.

        Of each step comes a block for each of `likes`; all of them together have its shape and its dtype.
        """

    def rows(self, a: Array, start: Any, size: Any) -> Array:
        """Give some rows of an array."""

    def product(self, a: Array, b: Array) -> Array:
        """Give a·bᵀ in the wide dtype."""

    def into(self, g: Array, w: Array) -> Array:
        """Give g·w in the wide dtype."""

    def across(self, g: Array, x: Array) -> Array:
        """Give gᵀ·x in the wide dtype."""

    def sums_of(self, w: Array) -> Array:
        """Give a place for the gradient of w, in the dtype that it is summed up in."""

    def added(self, dw: Array, g: Array, x: Array, start: Any) -> Array:
        """Give dw + gᵀ·x, or gᵀ·x if x begins at row 0; dw is used up."""

    def times(self, dy: Array, parts: Sequence[Array]) -> list[Array]:
        """Give the products with a scalar: the parts themselves, where the scalar is known to be 1."""

    def fused(self, z: Array, labels: Array, **options: Any) -> tuple[Array, list[Array], None] | None:
        """Give losses and slopes of logits by one kernel; None where there is none, and nothing is done."""

    def room(self, x: Array, w: Array, size: int) -> Array | None:
        """Give memory for so many rows of x·wᵀ, which chunk after chunk writes over; None where none can."""

    def raw_product(self, a: Array, b: Array, bias: Array | None, room: Array | None) -> Array:
        """Give a·bᵀ + bias as the host is fastest at, in the room that there is for it."""

    def softmax(self, zs: list[Array], level: Array) -> tuple[list[Array], Array | None, Array]:
        """Give the softmax of each row, and log Σ exp(z − level), of its largest or 0; zs are used up.

        The number a row between the two has yet to divide the first; None is 1.
        """

    def exponentials(self, z: Array, level: Array) -> Array:
        """Give exp(z − level); z is used up."""

    def slopes(self, e: Array, t: Array, total: Array) -> Array:
        """Give e·(t − Σ e·t / total), a sum a row; t is used up."""

    def weighed(self, x: Array, c: Array) -> Array:
        """Give c·x, a number a row, as `added` takes it."""

    def scaled(self, e: Array, factors: Array) -> Array:
        """Give e times a factor a row; e is used up."""

    def picked(self, z: Array, labels: Array, start: Any) -> Array:
        """Give the element of each row that has its label, 0 for a row of others; z begins at `start`."""

    def add_picked(self, z: Array, labels: Array, start: Any, values: Array) -> Array:
        """Add to the element of each row that has its label, if there is one; z begins at `start`."""

    def assert_none(self, bad: Array, text: str) -> None:
        """Say the text, in a program that cannot be asked now, if any of these is true; where one can."""

    def is_near(self, x: Array) -> bool:
        """Tell whether small chunks are fast: on a processor, and on no accelerator."""

    def length(self, a: Array) -> Any:
        """Give the number of rows: an int, or a tensor where none is known."""


def kernels_of(x: Array) -> Kernels:
    """Give the kernels of the host that an array belongs to."""
    return _kernels(hosts.of(x))


@functools.cache
def _kernels(host: Host) -> Kernels:
    module = hosts.part("ops.linear", hosts.framework_of(host) or "numpy")
    if module is None:
        raise host.refused("ops")
    return cast(Kernels, module)
