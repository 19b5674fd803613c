"""What the elementwise rules of `pb.ops` are, in mpmath, and where they are looked at: one row a rule.

A row has the true value and the true slopes as functions of mpmath numbers, and the points: numbers of a
dtype over 40 decades and both signs, as far as the domain goes. Errors are counted in units of the last place
of the true result; where a sum cancels by itself, in those of its terms, which the row gives.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import mpmath as mp
import numpy as np

mp.mp.dps = 75  # x = 1e-20, squared, and the digits of float64 twice
DTYPES = {
    "float64": np.dtype(np.float64),
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


@dataclass(frozen=True)
class Row:
    """Hold one rule: its name, its true value and slopes, and its points by dtype."""

    name: str
    value: Callable[..., Any]
    slopes: Callable[..., tuple[Any, ...]]
    points: Callable[[str], tuple[np.ndarray, ...]]
    # what the value, and the slopes, are sums of, where they cancel; None: they do not
    terms: Callable[..., Any] | None = None
    slope_terms: Callable[..., tuple[Any, ...]] | None = None
    kwargs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Truth:
    """Hold a true result in two parts, high + low, and the unit of its last place."""

    high: np.ndarray
    low: np.ndarray
    unit: np.ndarray
    tiny: np.ndarray  # below the smallest normal number: a host may flush it to zero
    huge: np.ndarray  # beyond the largest: infinite in the dtype

    def error(self, found: Any) -> np.ndarray:
        """Count how many units of the last place a result is off; infinite where it is not finite."""
        got = np.asarray(found).astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs((got - self.high) - self.low) / self.unit
        off = np.where(np.isfinite(got), off, np.inf)
        off = np.where(self.tiny & (got == 0), 0.0, off)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            beyond = got / self.high > 1 - 2.0**-6
        return np.where(self.huge & beyond, 0.0, off)


# ── points ───────────────────────────────────────────────────────────────────────────────────────────────


def limits(dtype: str) -> Any:
    return ml_dtypes.finfo(DTYPES[dtype])


@functools.cache
def sizes(dtype: str, count: int = 100) -> np.ndarray:
    """Give positive numbers over 40 decades, with all digits of the dtype, denser around one."""
    rng = np.random.default_rng(7)
    info = limits(dtype)
    low = max(-20.0, np.log10(float(info.smallest_normal)) + 0.3)
    high = min(20.0, np.log10(float(info.max)) - 0.3)
    spread = 10.0 ** rng.uniform(low, high, count)
    ordinary = np.concatenate([rng.uniform(0.01, 4.0, count // 2), rng.uniform(4.0, 120.0, count // 2)])
    known = [0.25, 0.5, 1.0, 1.5, 2.0, 10.0, 88.0, 100.0, 700.0]
    found = np.concatenate([spread, ordinary, known]).astype(DTYPES[dtype])
    return np.unique(found)


def both_signs(dtype: str) -> tuple[np.ndarray]:
    found = sizes(dtype)
    return (np.concatenate([-found, found]),)


def with_zero(dtype: str) -> tuple[np.ndarray]:
    return (np.concatenate([both_signs(dtype)[0], np.zeros(1, DTYPES[dtype])]),)


def positive(dtype: str) -> tuple[np.ndarray]:
    return (sizes(dtype),)


def within(low: float, high: float) -> Callable[[str], tuple[np.ndarray]]:
    """Give points of an interval: the small ones, and those that are near its ends."""

    def points(dtype: str) -> tuple[np.ndarray]:
        kind = DTYPES[dtype]
        some = np.concatenate([low + sizes(dtype).astype(np.float64), high - sizes(dtype).astype(np.float64)])
        found = np.concatenate([both_signs(dtype)[0].astype(np.float64), some])
        found = found[np.abs(found) < float(limits(dtype).max)].astype(kind)
        wide = found.astype(np.float64)
        return (np.unique(found[(wide > low) & (wide < high)]),)

    return points


def pairs(first: Any, second: Any, *, ordered: bool = False) -> Callable[[str], tuple[np.ndarray, ...]]:
    """Give some points of one and of the other, each with each."""

    def points(dtype: str) -> tuple[np.ndarray, ...]:
        a, b = first(dtype)[0], second(dtype)[0]
        rng = np.random.default_rng(11)
        x, y = rng.choice(a, 300), rng.choice(b, 300)
        if ordered:
            x, y = np.maximum(x, y), np.minimum(x, y)
            x, y = x[x != y], y[x != y]
        return x, y

    return points


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def log1mexp(x: Any) -> Any:
    return mp.log(-mp.expm1(-x)) if x < 1 else mp.log1p(-mp.exp(-x))


def sinc_slope(x: Any) -> Any:
    return (mp.cospi(x) - mp.sincpi(x)) / x if x else mp.mpf(0)


def exprel_slope(x: Any) -> Any:
    return (mp.exp(x) * x - mp.expm1(x)) / x**2 if x else mp.mpf(1) / 2


def focal(x: Any) -> Any:
    return sigmoid(-x) ** 2 * softplus(-x)


def focal_slope(x: Any) -> Any:
    s = sigmoid(-x)
    return -(s**2) * (2 * sigmoid(x) * softplus(-x) + s)


def zero_below(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *more: f(x, *more) if x > 0 else mp.mpf(0)


def labels(dtype: str) -> tuple[np.ndarray]:
    return (np.array([0.0, 1.0]).astype(DTYPES[dtype]),)


def exponents(dtype: str) -> tuple[np.ndarray]:
    return (np.array([-2.0, -0.7, 0.1, 0.5, 1.0, 1.3, 2.0, 3.0]).astype(DTYPES[dtype]),)


ROWS = [
    Row("sigmoid", sigmoid, lambda x: (sigmoid(x) * sigmoid(-x),), with_zero),
    Row("softplus", softplus, lambda x: (sigmoid(x),), with_zero),
    Row("log_sigmoid", lambda x: -softplus(-x), lambda x: (sigmoid(-x),), with_zero),
    Row("log1p", mp.log1p, lambda x: (1 / (1 + x),), within(-1, 1e6)),
    Row("log1mexp", log1mexp, lambda x: (1 / mp.expm1(x),), positive),
    Row(
        "softplus_inverse",
        lambda x: x + log1mexp(x),
        lambda x: (-1 / mp.expm1(-x),),
        positive,
        terms=lambda x: mp.mpf(1) if x < 2 else x,
    ),
    Row(
        "logaddexp",
        lambda a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b))),
        lambda a, b: (sigmoid(a - b), sigmoid(b - a)),
        pairs(with_zero, with_zero),
        terms=lambda a, b: abs(max(a, b)) + mp.log1p(mp.exp(-abs(a - b))),
    ),
    Row(
        "logsubexp",
        lambda a, b: a + log1mexp(a - b),
        lambda a, b: (-1 / mp.expm1(b - a), -1 / mp.expm1(a - b)),
        pairs(with_zero, with_zero, ordered=True),
        terms=lambda a, b: abs(a) + abs(log1mexp(a - b)) + abs((a - b) / mp.expm1(a - b)),
    ),
    Row("logit", lambda p: mp.log(p / (1 - p)), lambda p: (1 / (p * (1 - p)),), within(0, 1)),
    Row("xlogy", lambda x, y: x * mp.log(y), lambda x, y: (mp.log(y), x / y), pairs(with_zero, positive)),
    Row(
        "xlog1py",
        lambda x, y: x * mp.log1p(y),
        lambda x, y: (mp.log1p(y), x / (1 + y)),
        pairs(with_zero, within(-1, 1e4)),
    ),
    Row(
        "expm1_over_x",
        lambda x: mp.expm1(x) / x if x else mp.mpf(1),
        lambda x: (exprel_slope(x),),
        with_zero,
    ),
    Row(
        "safe_sqrt",
        zero_below(mp.sqrt),
        lambda x: (zero_below(lambda x: 1 / (2 * mp.sqrt(x)))(x),),
        with_zero,
    ),
    Row("safe_divide", lambda a, b: a / b, lambda a, b: (1 / b, -a / b**2), pairs(with_zero, both_signs)),
    Row(
        "safe_power",
        zero_below(lambda x, p: x**p),
        lambda x, p: (
            zero_below(lambda x: p * x ** (p - 1))(x),
            zero_below(lambda x: x**p * mp.log(x))(x),
        ),
        pairs(both_signs, exponents),
    ),
    Row("safe_arccos", mp.acos, lambda x: (-1 / mp.sqrt(1 - x**2),), within(-1, 1)),
    Row("safe_arcsin", mp.asin, lambda x: (1 / mp.sqrt(1 - x**2),), within(-1, 1)),
    Row(
        "sinc",
        mp.sincpi,
        lambda x: (sinc_slope(x),),
        with_zero,
        slope_terms=lambda x: (
            (abs(mp.cospi(x)) + abs(mp.sincpi(x))) / abs(x) if abs(x) > 0.5 else abs(sinc_slope(x)),
        ),
    ),
    Row(
        "huber",
        lambda x: x**2 / 2 if abs(x) <= 1 else abs(x) - mp.mpf(1) / 2,
        lambda x: (max(min(x, 1), -1),),
        with_zero,
    ),
    Row("log_cosh", lambda x: mp.log(mp.cosh(x)), lambda x: (mp.tanh(x),), with_zero),
    Row(
        "binary_cross_entropy_from_logits",
        lambda x, z: softplus(-x) if z else softplus(x),
        lambda x, z: (-sigmoid(-x) if z else sigmoid(x), -x),
        pairs(with_zero, labels),
    ),
    Row(
        "focal_loss",
        lambda x, z: focal(x) if z else focal(-x),
        lambda x, z: (focal_slope(x) if z else -focal_slope(-x), focal(x) - focal(-x)),
        pairs(with_zero, labels),
        slope_terms=lambda x, z: (abs(focal_slope(x if z else -x)), focal(x) + focal(-x)),
    ),
]
TABLE = {row.name: row for row in ROWS}


# ── the truth ────────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def truth(name: str, dtype: str) -> list[Truth]:
    """Give the true value of a row at its points, then its true slopes."""
    row = TABLE[name]
    given = [[mp.mpf(float(x)) for x in points] for points in row.points(dtype)]
    results = [(row.value(*at), *row.slopes(*at)) for at in zip(*given)]
    sums = [
        (None if row.terms is None else row.terms(*at), *(row.slope_terms(*at) if row.slope_terms else ()))
        for at in zip(*given)
    ]
    columns = list(zip(*results))
    terms = list(itertools.zip_longest(*sums))[: len(columns)] if sums else []
    return [
        _truth(column, terms[i] if i < len(terms) else [None] * len(column), dtype)
        for i, column in enumerate(columns)
    ]


def _truth(column: Any, terms: Any, dtype: str) -> Truth:
    info = limits(dtype)
    least, most = mp.mpf(float(info.smallest_normal)), mp.mpf(float(info.max))
    high, low, unit, tiny, huge = [], [], [], [], []
    for y, term in zip(column, terms):
        size = max(abs(y), abs(term)) if term is not None else abs(y)
        big = abs(y) > most * (1 - mp.mpf(2) ** -20)
        high.append(float(mp.sign(y) * min(abs(y), most)))
        low.append(0.0 if big else float(y - mp.mpf(high[-1])))
        _, exponent = mp.frexp(max(size, least))
        unit.append(float(mp.ldexp(1, int(exponent) - DIGITS[dtype])))
        tiny.append(abs(y) < least * 2)
        huge.append(big)
    return Truth(*(np.array(part) for part in (high, low, unit, tiny, huge)))
