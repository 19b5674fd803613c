"""expm1_over_x: (eˣ − 1) / x, and 1 at x = 0; SciPy's `exprel`.

With t = x/2:   (eˣ − 1) / x = eᵗ · S,   S = sinh(t) / t = Σ t²ᵏ / (2k + 1)!
    its slope is ½·eᵗ·(S + S′),   S′ = t · Σ (2k + 2) t²ᵏ / (2k + 3)!         for |x| ≤ 2, by the sums
    and (eˣ·(x − 1) + 1) / x²                                                beyond, where nothing cancels

The obvious (eˣ·x − (eˣ − 1)) / x² has no digit left for small x. Beyond, eˣ / x is eᵗ·(eᵗ / x), because eˣ
overflows before it does.
Domain: every x. Edges: 1 at 0 with slope ½; 0 at −∞ with slope 0; ∞ at ∞ with slope ∞; NaN stays NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.elementwise import elementwise
from pullback.example import example
from pullback.ops.precision import narrow, polynomial, reals
from pullback.typed import T

_MOST = 1e4  # where everything is ∞ already, and ∞ / ∞ is nothing yet
_TERMS = 10  # t ≤ 1: the next one is below the last digit of float64
_VALUE = [1 / math.factorial(2 * k + 1) for k in range(_TERMS)]
_SLOPE = [(2 * k + 2) / math.factorial(2 * k + 3) for k in range(_TERMS)]


def _parts(xp: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    """Tell where the sums are used; give x/2 there, 1/x elsewhere, and the root of eˣ."""
    near = xp.abs(w) <= 2
    t = xp.where(near, w, 0.0) / 2
    far = xp.where(near, 4.0, xp.where(w > _MOST, _MOST, w))
    return near, t, 1 / far, xp.exp(xp.where(near, t, far / 2))


def _slope(x: Any) -> Any:
    xp, w = reals("expm1_over_x", x)
    near, t, inverse, h = _parts(xp, w)
    sums = polynomial(_VALUE, t * t, single=6) + t * polynomial(_SLOPE, t * t, single=6)
    return xp.where(near, h * sums / 2, h * (h * ((1 - inverse) * inverse)) + inverse * inverse)


@example(np.array([0.7, -1.3, 3.1]))
@elementwise(partials=_slope)
def expm1_over_x(x: T) -> T:
    """Give (eˣ − 1) / x, and 1 at 0, with a slope that keeps its digits around 0.

    Args:
        x: Any real values.

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.expm1_over_x(np.array([-1e9, 0.0, 1.0])).round(3).tolist()
        [0.0, 1.0, 1.718]

    Do not use it for eˣ − 1 alone: `expm1` of the framework is right.
    """
    xp, w = reals("expm1_over_x", x)
    near, t, inverse, h = _parts(xp, w)
    y = xp.where(near, h * polynomial(_VALUE, t * t, single=6), h * (h * inverse) - inverse)
    return narrow(y, x)  # type: ignore[no-any-return]
