"""Arrays beside the code that makes them: as they are, rounded, or made by an expression."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from pullback.dtypes import is_complex, is_guest, is_real_or_complex
from pullback.view.subject import Array


@dataclass(frozen=True)
class Written:
    """Hold an array and an expression of NumPy that gives it."""

    text: str
    array: Array


def literal(a: Array) -> Written:
    """Write an array with its entries."""
    known = a.astype(np.float64) if is_guest(a.dtype) else a
    written = np.array2string(
        known, separator=", ", threshold=known.size + 1, floatmode="unique", max_line_width=10**9
    )
    text = re.sub(r"\[ | (?=[],])", lambda m: m[0].strip(), " ".join(written.split()))
    return Written(re.sub(r"\b(nan|inf)\b", r"np.\1", text), a)


def rounded(a: Array) -> Written:
    """Write an array with short numbers; zeros stay zeros, and nothing else becomes one."""
    if not is_real_or_complex(a.dtype) or is_guest(a.dtype) or is_complex(a.dtype):
        return literal(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.floor(np.log10(np.abs(a.astype(np.float64))))
        unit = 10.0 ** np.where(np.isfinite(size), np.minimum(size, 0) - 1, 0)
        short = np.where(np.isfinite(size), np.round(a / unit) * unit, a)
    # The nearest number with few digits, not what the product left.
    return literal(np.vectorize(lambda x: float(f"{x:.6g}"), otypes=[a.dtype])(short) if a.size else a)


def made(a: Array) -> Written:
    """Give another array of the same shape, dtype and kind of values, made by a short expression."""
    rng, shape = np.random.default_rng(0), a.shape
    seeded = "np.random.default_rng(0)"
    if a.size and (a == a.reshape(-1)[0]).all():
        value = a.reshape(-1)[0].item()
        return Written(f"np.full({shape}, {value!r})", np.full(shape, value).astype(a.dtype))
    if a.dtype.kind == "b":
        return Written(f"{seeded}.random({shape}) < 0.5", np.asarray(rng.random(shape) < 0.5))
    if a.dtype.kind in "iu":
        top = int(a.max(initial=0)) + 1
        return Written(
            f"{seeded}.integers({top}, size={shape})", rng.integers(top, size=shape).astype(a.dtype)
        )
    if not is_real_or_complex(a.dtype) or not a.size:
        return literal(a)
    if is_complex(a.dtype):
        both = f"{seeded}.normal(size=(*{shape}, 2)) @ [1, 1j]"
        return Written(both, (rng.normal(size=(*shape, 2)) @ np.array([1, 1j])).astype(a.dtype))
    real = a.astype(np.float64)
    if (real > 0).all():
        top = 1 if real.max() < 1 else 2
        return Written(
            f"{seeded}.uniform(0.1, {top}, {shape})", np.asarray(rng.uniform(0.1, top, shape), a.dtype)
        )
    return Written(f"{seeded}.normal(size={shape})", np.asarray(rng.normal(size=shape), a.dtype))


def drawn(a: Array) -> Written:
    """Give a cotangent for an output, made by a short expression."""
    rng = np.random.default_rng(1)
    if is_complex(a.dtype):
        both = rng.normal(size=(*a.shape, 2)) @ np.array([1, 1j])
        return Written(
            f"np.random.default_rng(1).normal(size=(*{a.shape}, 2)) @ [1, 1j]", both.astype(a.dtype)
        )
    values = np.asarray(rng.normal(size=a.shape)).astype(a.dtype)
    return Written(f"np.random.default_rng(1).normal(size={a.shape})", values)
