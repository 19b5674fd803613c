"""Steps that can be trained: `heaviside`, `sign` and `round`, with a slope in the place of their derivative.

With h a smooth step of `slopes.py`:   heaviside ~ h(x)   sign ~ 2·h(x)   round ~ ⌊x⌋ + h(x − ⌊x⌋ − ½)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.options import require_number, require_word
from pullback.replace.slopes import SLOPES
from pullback.typed import T


def _chosen(verb: str, slope: str, sharpness: Any) -> Any:
    """Give the sharpness, or the usual one of the slope."""
    require_word(verb, "slope", slope, SLOPES)
    if sharpness is None:
        return SLOPES[slope].sharpness
    free = slope == "straight_through"  # zero: no window
    require_number(verb, "sharpness", sharpness, least=0, above=not free, fix="leave it out, or 4.0")
    return sharpness


def smooth_heaviside(x: Any, *, slope: str = "sigmoid", sharpness: Any = None) -> Any:
    """Climb from 0 to 1 smoothly: the function whose derivative `heaviside` has."""
    return SLOPES[slope].step(hosts.of(x).arrays, x, _chosen("heaviside", slope, sharpness))


@custom_gradient(like=smooth_heaviside)
@example(np.array([0.7, -1.3, 2.1]), slope="sigmoid")
@example(np.array([0.7, -1.3, 2.1]), slope="arctan")
@example(np.array([0.7, -1.3, 2.1]), slope="fast_sigmoid")
@example(np.array([0.7, -1.3, 2.1]), slope="triangular")
@example(np.array([0.7, -1.3, 2.1]), slope="straight_through")
def heaviside(x: T, *, slope: str = "sigmoid", sharpness: Any = None) -> tuple[T, Function]:
    """Give 1 where a value is not negative and 0 elsewhere, with a slope to train by.

    The slopes, with t = sharpness · x: `"sigmoid"` k·σ(t)·(1−σ(t)), `"arctan"` k/2 / (1 + (πt/2)²),
    `"fast_sigmoid"` 1/(1+|t|)², `"triangular"` k·max(0, 1−|t|), and `"straight_through"`, which is 1 within
    |t| ≤ 1. Second order and forward mode: derived, those of the smooth step.

    Args:
        x: The value, for a spiking neuron its membrane potential above the threshold.
        slope: The name of the slope.
        sharpness: Its parameter k; by default 4, 2, 10, 1 and 0, in that order, where 0 means no window.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> pb.heaviside(tf.constant([-1.0, 0.5]), slope="arctan", sharpness=2.0).numpy().tolist()
        [0.0, 1.0]

    Do not use it where a smooth sigmoid would do: its gradient is not that of its value.
    """
    xp = hosts.of(x).arrays
    k = _chosen("heaviside", slope, sharpness)

    def grad(dy: Any) -> Any:
        return {"x": dy * SLOPES[slope].slope(xp, x, k)}

    return xp.cast(x >= 0, x), grad


def smooth_sign(x: Any, *, slope: str = "straight_through", sharpness: Any = None) -> Any:
    """Climb from −1 to 1 smoothly: the function whose derivative `sign` has."""
    k = _chosen("sign", slope, sharpness)
    return _height(slope) * SLOPES[slope].step(hosts.of(x).arrays, x, k)


def _height(slope: str) -> int:
    return 1 if slope == "straight_through" else 2


@custom_gradient(like=smooth_sign)
@example(np.array([0.7, -1.3, 2.1]), sharpness=1.0)
@example(np.array([0.7, -1.3, 2.1]), slope="arctan")
def sign(x: T, *, slope: str = "straight_through", sharpness: Any = None) -> tuple[T, Function]:
    """Give the sign of a value, with a slope to train by, as binary networks need it.

    The slopes are twice those of `heaviside`, since the step is twice as high; `"straight_through"` stays 1.
    Second order and forward mode: derived, those of the smooth step.

    Args:
        x: The value.
        slope: The name of the slope.
        sharpness: Its parameter; `sharpness=1` with `"straight_through"` is the hard tanh of binary networks.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> pb.sign(tf.constant([-2.0, 0.5]), sharpness=1.0).numpy().tolist()
        [-1.0, 1.0]

    Do not use it for the sign inside a formula: there the derivative is zero, as the framework's own has it.
    """
    xp = hosts.of(x).arrays
    k = _chosen("sign", slope, sharpness)

    def grad(dy: Any) -> Any:
        return {"x": dy * _height(slope) * SLOPES[slope].slope(xp, x, k)}

    return xp.sign(x), grad


def smooth_round(x: Any, *, slope: str = "straight_through", sharpness: Any = None) -> Any:
    """Climb from integer to integer smoothly: the function whose derivative `round` has."""
    k = _chosen("round", slope, sharpness)
    if slope == "straight_through" and k == 0:
        return x
    xp = hosts.of(x).arrays
    below = xp.stop(xp.floor(x))
    return below + SLOPES[slope].step(xp, x - below - 0.5, k)


@custom_gradient(like=smooth_round)
@example(np.array([0.7, -1.3, 2.1]))
@example(np.array([0.7, -1.3, 2.1]), slope="sigmoid", sharpness=8.0)
def round(x: T, *, slope: str = "straight_through", sharpness: Any = None) -> tuple[T, Function]:
    """Round to the nearest integer, with a slope to train by, as quantisers need it.

    Any slope but `"straight_through"` is centred on the step between two integers. Second order and forward
    mode: derived, those of the smooth staircase.

    Args:
        x: The value.
        slope: The name of the slope, as for `heaviside`.
        sharpness: Its parameter.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> pb.round(tf.constant([0.2, 0.8])).numpy().tolist()
        [0.0, 1.0]

    Do not use it to round a result: nobody trains through that.
    """
    xp = hosts.of(x).arrays
    k = _chosen("round", slope, sharpness)

    def grad(dy: Any) -> Any:
        within = x - xp.stop(xp.floor(x)) - 0.5
        return {"x": dy * SLOPES[slope].slope(xp, within, k)}

    return xp.round(x), grad
