"""Slopes that stand in for the derivative of a step, which is zero almost everywhere.

Each is h′ of a smooth step h from 0 to 1 around zero, with k its sharpness and t = k·x:

    straight_through  h = x                    h′ = 1 within |x| ≤ 1/k, or everywhere for k = 0
    sigmoid           h = σ(t)                 h′ = k·σ(t)·(1 − σ(t)) = k/4·(1 − tanh²(t/2))
    arctan            h = ½ + arctan(πt/2)/π   h′ = k/2 / (1 + (πt/2)²)
    fast_sigmoid      h = x / (1 + |t|)        h′ = 1 / (1 + |t|)²
    triangular        h′ = k·max(0, 1 − |t|)   h = its integral
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pullback.hosts.base import Arrays
from pullback.hosts.operation import Function


class Slope(NamedTuple):
    """Hold a smooth step, its derivative, and the sharpness that is usual for it."""

    step: Function
    slope: Function
    sharpness: float


def _through(xp: Arrays, x: Any, k: Any) -> Any:
    return x if _is_zero(k) else xp.clip(x, -1 / k + 0 * x, 1 / k + 0 * x)


def _through_slope(xp: Arrays, x: Any, k: Any) -> Any:
    one = xp.zeros_like(x) + 1
    return one if _is_zero(k) else xp.where(xp.abs(k * x) <= 1, one, xp.zeros_like(x))


def _is_zero(k: Any) -> bool:
    return isinstance(k, (int, float)) and k == 0


def _sigmoid(xp: Arrays, x: Any, k: Any) -> Any:
    return (1 + xp.tanh(k * x / 2)) / 2


def _sigmoid_slope(xp: Arrays, x: Any, k: Any) -> Any:
    tanh = xp.tanh(k * x / 2)
    return k / 4 * (1 - tanh) * (1 + tanh)


def _arctan(xp: Arrays, x: Any, k: Any) -> Any:
    return 0.5 + xp.arctan(math.pi / 2 * k * x) / math.pi


def _arctan_slope(xp: Arrays, x: Any, k: Any) -> Any:
    t = math.pi / 2 * k * x
    return k / 2 / (1 + t * t)


def _fast_sigmoid(xp: Arrays, x: Any, k: Any) -> Any:
    return x / (1 + xp.abs(k * x))


def _fast_sigmoid_slope(xp: Arrays, x: Any, k: Any) -> Any:
    wide = 1 + xp.abs(k * x)
    return 1 / (wide * wide)


def _triangular(xp: Arrays, x: Any, k: Any) -> Any:
    t = xp.clip(k * x, -1 + 0 * x, 1 + 0 * x)
    return 0.5 + t * (1 - xp.abs(t) / 2)


def _triangular_slope(xp: Arrays, x: Any, k: Any) -> Any:
    height = 1 - xp.abs(k * x)
    return k * xp.where(height > 0, height, xp.zeros_like(height))


SLOPES = {
    "sigmoid": Slope(_sigmoid, _sigmoid_slope, 4.0),
    "arctan": Slope(_arctan, _arctan_slope, 2.0),
    "fast_sigmoid": Slope(_fast_sigmoid, _fast_sigmoid_slope, 10.0),
    "triangular": Slope(_triangular, _triangular_slope, 1.0),
    "straight_through": Slope(_through, _through_slope, 0.0),
}
