"""Vectors that are lists of tensors, over the reals: Re Σ conj(a)·b is the inner product.

They are computed with as lists of flat tensors, so that a basis is a matrix; a function of the user's sees
the shapes that it knows. Sums are made in the wide dtype of the leaves. Shapes need not be known, except to
write a vector as one row of numbers, which dense systems do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.dtypes import TABLE, WIDE
from pullback.hosts.base import Host
from pullback.hosts.operation import Tensor
from pullback.namespace import namespace

Vector = list[Tensor]


class Space:
    """The vectors that are shaped like one."""

    def __init__(self, host: Host, like: Sequence[Tensor]) -> None:
        self.host = host
        self.like = [host.arrays.stop(x) for x in like]
        self.xp = namespace(*like)
        specs = [host.spec(x) for x in like]
        self.complex = [spec.kind == "complex" for spec in specs]
        names = [WIDE.get(spec.dtype, spec.dtype) for spec in specs]
        self.roundoff = max(TABLE[spec.dtype].roundoff for spec in specs)
        # the dtype of inner products
        self.wide = getattr(self.xp, "float64" if {*names} & {"float64", "complex128"} else "float32")
        known = all(spec.shape is not None and None not in spec.shape for spec in specs)
        self.shapes = [tuple(n or 0 for n in spec.shape or ()) for spec in specs] if known else None

    @property
    def size(self) -> int | None:
        """Count the real numbers in a vector; None if that is not known."""
        if self.shapes is None:
            return None
        return sum(math.prod(s) * (2 if c else 1) for s, c in zip(self.shapes, self.complex))

    def flat(self, a: Vector) -> Vector:
        """Make each tensor flat."""
        return [self.xp.reshape(x, (-1,)) for x in a]

    def shaped(self, a: Vector) -> Vector:
        """Give flat tensors their shapes again."""
        return [self.host.arrays.shaped(x, like) for x, like in zip(a, self.like)]

    def zeros(self) -> Vector:
        return [self.host.arrays.zeros_like(x) for x in self.flat(self.like)]

    def dot(self, a: Vector, b: Vector) -> Tensor:
        """Give Re Σ conj(a)·b."""
        return sum(self._products(x, y) for x, y in zip(a, b))

    def _products(self, x: Tensor, y: Tensor) -> Tensor:
        """Give the inner product of y with x, or with each row of it."""
        wide, xp = self.host.arrays.wide, self.xp
        if self.host.spec(y).kind == "complex":
            return xp.astype(xp.real(xp.matmul(self.host.conjugate(x), y)), self.wide)
        return xp.astype(xp.matmul(wide(x), wide(y)), self.wide)

    def norm(self, a: Vector) -> Tensor:
        return self.xp.sqrt(self.dot(a, a))

    def plus(self, a: Vector, factor: Tensor, b: Vector) -> Vector:
        """Give a + factor·b."""
        return [x + self.host.arrays.cast(factor, y) * y for x, y in zip(a, b)]

    def minus(self, a: Vector, b: Vector) -> Vector:
        return [x - y for x, y in zip(a, b)]

    def times(self, factor: Tensor, a: Vector) -> Vector:
        return [self.host.arrays.cast(factor, x) * x for x in a]

    # ── several vectors at once: the rows of a matrix ────────────────────────────────────────────────────

    def many(self, count: int) -> Vector:
        """Give zeros for so many vectors."""
        return [self.xp.stack([x] * count) for x in self.zeros()]

    def put(self, rows: Vector, place: Tensor, a: Vector) -> Vector:
        """Put a vector into a place; the rows as they were are not to be used any more."""
        return [self.host.arrays.put(m, place, x) for m, x in zip(rows, a)]

    def combined(self, factors: Tensor, rows: Vector) -> Vector:
        """Give the sum of vectors, each times its factor."""
        return [self.xp.matmul(self.host.arrays.cast(factors, m), m) for m in rows]

    def dots(self, rows: Vector, a: Vector) -> Tensor:
        """Give the inner product of each of the vectors with one."""
        return self.dot(rows, a)

    # ── one row of numbers ───────────────────────────────────────────────────────────────────────────────

    def row(self, a: Vector) -> Tensor:
        """Write a vector as one row of real numbers."""
        xp, parts = self.xp, []
        for x, is_complex in zip(a, self.complex):
            both = [xp.real(x), xp.imag(x)] if is_complex else [x]
            parts += [xp.astype(part, self.wide) for part in both]
        return xp.concat(parts)

    def vector(self, row: Tensor) -> Vector:
        """Read it again."""
        found, start = [], 0
        assert self.shapes is not None
        for x, shape, is_complex in zip(self.like, self.shapes, self.complex):
            length, parts = math.prod(shape), []
            for _ in range(2 if is_complex else 1):
                parts.append(row[start : start + length])
                start += length
            part: Any = self.host.arrays.cast(parts[0], x)
            found.append(part + 1j * self.host.arrays.cast(parts[1], x) if is_complex else part)
        return found
