"""Which oracle decides: the host's autodiff of the body, float64, or differences.

The cheap oracle is the plain gradient of the body. Its agreement spares the differences at the checker's
own points; its disagreement proves nothing, because the stable rule may be the right one.
"""

from __future__ import annotations

import numpy as np

from pullback.checker.equation import length
from pullback.checker.problem import Problem, ShapeMismatchError
from pullback.view.subject import Array, Subject

AUTODIFF = "autodiff of the body"
FLOAT64 = "differences in float64"
SHIPPED = "differences in the shipped dtype"


def body_gradient(subject: Subject, problem: Problem, v: Array) -> Array | None:
    """Give the plain gradient of the body, or None when there is none."""
    if subject.body_pullback is None:
        return None
    try:
        claimed = subject.body_pullback(problem.inputs, problem.codomain.unpack(v))
        return problem.packed(claimed)
    except (ShapeMismatchError, Exception):  # the body need not be differentiable
        return None


def disagreement(a: Array, b: Array, unit: float) -> Array:
    """Mark the entries where two gradients differ by more than rounding could explain."""
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.abs(a), np.abs(b))
        typical = length(size) / size.size**0.5 if np.isfinite(size).all() and size.size else 0.0
        tolerance = float(unit**0.5)
        apart = np.abs(a - b) > tolerance * size + unit**0.75 * typical
    return np.asarray(np.where(np.isfinite(a) & np.isfinite(b), apart, np.isfinite(a) != np.isfinite(b)))
