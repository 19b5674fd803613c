"""A function near one point: its arguments and values as vectors, and steps away from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.checker.space import Space, roundoff
from pullback.wrapping.derivatives import Parts
from pullback.wrapping.foreign import Point
from pullback.wrapping.noise import scales
from pullback.wrapping.shapes import smooth

if TYPE_CHECKING:
    from pullback.wrapping.differences import Scheme

Array = np.ndarray[Any, Any]


@dataclass
class Local:
    """A function near one point, as a map of real vectors."""

    parts: Parts
    inputs: Space
    outputs: Space
    x: Array
    y: Array
    sizes: Array
    moving: list[int]  # the places of the smooth tensors
    kept: list[bool]  # which values are smooth

    @classmethod
    def of(cls, parts: Parts) -> Local:
        """Look at the arrays of a derivative."""
        moving = [i for i, t in enumerate(parts.tensors) if smooth(t.dtype)]
        inputs, outputs = Space.of(parts.moving), Space.of(parts.results)
        x = inputs.pack(parts.moving)
        slices = [inputs.part(k) for k in range(len(moving))]
        kept = [smooth(v.dtype) for v in parts.values]
        return cls(parts, inputs, outputs, x, outputs.pack(parts.results), scales(x, slices), moving, kept)

    @property
    def unit(self) -> float:
        """The coarsest rounding among arguments and values."""
        return max(roundoff(self.parts.moving), roundoff(self.parts.results))

    def arrays(self, vector: Array) -> list[Array]:
        """Give the tensors of the call with the smooth ones moved."""
        tensors = list(self.parts.tensors)
        for place, array in zip(self.moving, self.inputs.unpack(vector)):
            tensors[place] = array
        return tensors

    def reached(self, vector: Array) -> Array:
        """Give where a vector really is, after rounding."""
        return self.inputs.pack(self.inputs.unpack(vector))

    def values(self, results: Sequence[Array]) -> Array:
        """Pack the smooth results."""
        return self.outputs.pack([r for r, keep in zip(results, self.kept) if keep])


@dataclass
class Steps:
    """Shift a point, and see how the values change."""

    scheme: Scheme
    local: Local

    @property
    def signs(self) -> tuple[float, ...]:
        """To which sides a shift goes."""
        return (1.0, -1.0) if self.scheme.name == "central" else (1.0,)

    def points(self, shift: Array, label: str) -> Iterator[Point]:
        """List where the function is run."""
        if self.scheme.name == "complex-step":
            yield Point(complex_arrays(self.local, shift), label)
            return
        for sign in self.signs:
            yield Point(self.local.arrays(self.local.x + sign * shift), label)

    def change(self, shift: Array, stream: Iterator[list[Array]]) -> tuple[Array, Array]:
        """Take the results from a stream; give the change of the values, and the shift that was made."""
        local = self.local
        if self.scheme.name == "complex-step":
            return imaginary_part(local, next(stream)), shift
        reached = [local.reached(local.x + sign * shift) for sign in self.signs]
        seen = [local.values(next(stream)) for _ in reached]
        if len(reached) == 2:
            return seen[0] - seen[1], reached[0] - reached[1]
        return seen[0] - local.y, reached[0] - local.x

    def single(self, h: Array, move: Any) -> Array:
        """Give the shift of some coordinates."""
        shift = np.zeros(self.local.inputs.size)
        shift[move] = h[move]
        return shift


def complex_arrays(local: Local, shift: Array) -> list[Array]:
    """Give the tensors of the call with the smooth ones moved off the real axis."""
    tensors = list(local.parts.tensors)
    for place, x, dx in zip(local.moving, local.parts.moving, local.inputs.unpack(shift)):
        tensors[place] = (x + 1j * dx.astype(x.dtype)).astype(np.result_type(x.dtype, np.complex64))
    return tensors


def imaginary_part(local: Local, results: Sequence[Array]) -> Array:
    """Pack the imaginary parts of the smooth results."""
    kept = [r for r, keep in zip(results, local.kept) if keep]
    return local.outputs.pack([np.imag(r) for r in kept])
