"""Random directions and cotangents that no error hides behind.

Signs and magnitudes are both drawn: positive-only directions attenuate errors that sum to zero, pure
signs let two equal errors cancel. Magnitudes stay in [½, 3⁄2], so that a single wrong entry is never
multiplied by almost nothing.
"""

from __future__ import annotations

import numpy as np

from pullback.view.subject import Array


def signed(rng: np.random.Generator, size: int) -> Array:
    """Draw ±U(½, 3⁄2)."""
    return rng.choice(np.array([-1.0, 1.0]), size) * rng.uniform(0.5, 1.5, size)


def floor_of(x: Array) -> float:
    """Give the size below which an entry counts as small beside the others."""
    rms = float(np.sqrt(np.mean(np.square(x)))) if x.size else 0.0
    return rms / 16 if rms > 0 and np.isfinite(rms) else 1.0


def relative(rng: np.random.Generator, x: Array) -> Array:
    """Move each entry in proportion to itself: never across zero, never out of (0, ∞)."""
    scale = np.where(x == 0, floor_of(x), np.abs(x))
    return signed(rng, x.size) * scale


def floored(rng: np.random.Generator, x: Array) -> Array:
    """Move small entries as if they had a sixteenth of the typical size."""
    return signed(rng, x.size) * np.maximum(np.abs(x), floor_of(x))
