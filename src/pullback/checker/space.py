"""A tuple of arrays as one real vector.

The numerics know one flat float64 vector. Packing is exact for every dtype; unpacking rounds to the
dtype, which is how the displacement really made becomes visible. A complex entry is two reals, so that
the pairing Re(conj(a)·b) of the hosts is the dot product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pullback.dtypes import is_complex, roundoff_of
from pullback.view.subject import Array, Arrays

EXACT = (np.dtype(np.float64), np.dtype(np.complex128))  # nothing is rounded to them
SINGLE = roundoff_of(np.dtype(np.float32))


def roundoff(arrays: Sequence[Array]) -> float:
    """Give the coarsest unit roundoff among the arrays."""
    return max((roundoff_of(a.dtype) for a in arrays), default=2.0**-53) or 2.0**-53


@dataclass(frozen=True)
class Space:
    """Know the shapes and dtypes of some arrays, and pack them."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[np.generic], ...]

    @classmethod
    def of(cls, arrays: Sequence[Array]) -> Space:
        """Take shapes and dtypes from examples."""
        return cls(tuple(a.shape for a in arrays), tuple(a.dtype for a in arrays))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Give the number of reals of each array."""
        return tuple(math.prod(s) * (2 if is_complex(d) else 1) for s, d in zip(self.shapes, self.dtypes))

    @property
    def size(self) -> int:
        """Give the number of reals."""
        return sum(self.sizes)

    def pack(self, arrays: Sequence[Array | None]) -> Array:
        """Concatenate to float64; None is zeros."""
        vector, start = np.empty(self.size), 0
        for array, size, dtype in zip(arrays, self.sizes, self.dtypes):
            part = vector[start : start + size]
            start += size
            if array is None:
                part[:] = 0
            elif is_complex(dtype):
                part.view(np.complex128)[:] = array.reshape(-1)
            else:
                part[:] = (array.real if is_complex(array.dtype) else array).reshape(-1)
        return vector

    def unpack(self, vector: Array) -> Arrays:
        """Split again, rounding to each dtype."""
        arrays, start = [], 0
        for shape, dtype, size in zip(self.shapes, self.dtypes, self.sizes):
            part = vector[start : start + size]
            start += size
            if is_complex(dtype):
                part = (
                    part.view(np.complex128)
                    if part.flags.c_contiguous
                    else np.array(part).view(np.complex128)
                )
            if dtype in EXACT:
                arrays.append(part.astype(dtype).reshape(shape))
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                arrays.append(part.astype(dtype).reshape(shape))
        return tuple(arrays)

    def where(self, index: int) -> tuple[int, tuple[int, ...]]:
        """Tell which array a real belongs to, and its coordinates there."""
        for k, (shape, dtype, size) in enumerate(zip(self.shapes, self.dtypes, self.sizes)):
            if index < size:
                index //= 2 if is_complex(dtype) else 1
                return k, tuple(int(i) for i in np.unravel_index(index, shape)) if shape else ()
            index -= size
        raise IndexError(index)

    def part(self, k: int) -> slice:
        """Give the reals of the k-th array."""
        sizes = self.sizes
        return slice(sum(sizes[:k]), sum(sizes[: k + 1]))
