"""Random cotangents in the shapes and dtypes of a subject's outputs."""

from __future__ import annotations

import numpy as np

from pullback.checker.directions import signed
from pullback.checker.space import Space
from pullback.view.subject import Array, Arrays, Subject


def cotangents(subject: Subject, rng: np.random.Generator) -> Arrays:
    """Draw one cotangent per output."""
    space = Space.of(subject.forward(subject.inputs))
    return space.unpack(signed(rng, space.size))


def rounding(unit: float) -> float:
    """Give the relative difference that another order of the same operations may make.

    Half the digits: a compiler may fuse what an ill-conditioned formula needs apart.
    """
    return float(max(2**14 * unit, unit**0.5))


def near(a: Array | None, b: Array | None, *, rtol: float) -> bool:
    """Tell whether two optional arrays agree, in shape too; NaN equals NaN."""
    if a is None or b is None:
        only = a if b is None else b
        return only is None or not bool(np.any(only))
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape:
        return False
    kind = np.complex128 if "complex" in x.dtype.name + y.dtype.name else np.float64
    x, y = x.astype(kind), y.astype(kind)
    size = float(np.max(np.abs(np.where(np.isfinite(x), x, 0)), initial=0.0))
    return bool(np.allclose(x, y, rtol=rtol, atol=rtol * size, equal_nan=True))
