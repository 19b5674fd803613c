"""The digits that a rule computes with: half precision in float32, differences with what they round off.

A formula of several operations loses one digit of eight or eleven in each: no rule is right to the last
digits in half precision. So it is computed in float32, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback import hosts
from pullback.dtypes import WIDE
from pullback.errors import UnsupportedInputError
from pullback.namespace import namespace

FAR = 8192.0
_NUMBERS = (bool, int, float)  # they have the dtype of whatever they meet


def wide(*values: Any) -> Any:
    """Give the namespace, then the values as arrays of one dtype: float32 for half precision."""
    xp = namespace(*values)
    arrays = [value for value in values if not isinstance(value, _NUMBERS)]
    dtype = arrays[0].dtype if len(arrays) == 1 else xp.result_type(*arrays)
    if hosts.of(arrays[0]).spec(arrays[0]).dtype in WIDE and dtype == arrays[0].dtype:
        dtype = xp.float32
    return xp, *(_as(xp, value, dtype) for value in values)


def reals(verb: str, *values: Any) -> Any:
    """Give the same of real floating values, or numbers; refuse any other."""
    kinds = {dtype: kind for dtype, kind in map(_kind, values) if dtype}
    if "floating" not in kinds.values() or "complex" in kinds.values():
        raise not_real(verb, ", ".join(kinds))
    return wide(*values)


def _kind(value: Any) -> tuple[str, str]:
    if isinstance(value, _NUMBERS):
        return "", ""
    spec = hosts.of(value).spec(value)
    return spec.dtype, spec.kind


def not_real(verb: str, dtype: str) -> UnsupportedInputError:
    """Give the error for what a rule of real numbers is not for."""
    return UnsupportedInputError.about(
        verb,
        found=f"an input of dtype {dtype}",
        expected="real floating numbers",
        fix="cast it to float32 or float64",
    )


def _as(xp: Any, value: Any, dtype: Any) -> Any:
    if isinstance(value, _NUMBERS):
        return xp.asarray(value, dtype=dtype)
    return value if value.dtype == dtype else xp.astype(value, dtype)


def narrow(result: Any, *given: Any) -> Any:
    """Round a result to the dtype of what was given."""
    xp = namespace(*given)
    arrays = [value for value in given if not isinstance(value, _NUMBERS)]
    dtype = arrays[0].dtype if len(arrays) == 1 else xp.result_type(*arrays)
    return result if result.dtype == dtype else xp.astype(result, dtype)


def near(x: Any) -> Any:
    """Give x between where the slope of an activation is 0, and where it is 1, to the last digit."""
    return hosts.of(x).arrays.clip(x, -FAR, FAR)


def log1p_below(xp: Any, e: Any) -> Any:
    """Give log(1 + e), 0 ≤ e ≤ 1, by one logarithm: of the sum u as it is rounded, and what that took.

    log(1 + e) = log u + log(1 + r/u) with r = (1 − u) + e, which is exact; 1/u is 1 − e/2 to a quarter.
    """
    u = 1 + e
    return xp.log(u) + ((1 - u) + e) * (1 - e / 2)  # XLA takes (1 + e) − 1 for e


def polynomial(coefficients: Sequence[float], x: Any, *, single: int) -> Any:
    """Give Σ cₖ·xᵏ, from the highest power down; `single` terms suffice for float32."""
    if hosts.of(x).spec(x).dtype == "float32":
        coefficients = coefficients[:single]
    total = coefficients[-1] + 0 * x
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def difference(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Give a − b, and what rounding took from it: both together are exact (Knuth's two-sum).

    Two equal infinities are at a distance of zero. The derivative of the rest is zero: all of it is in the
    first.
    """
    d = a - b
    back = d - a
    rest = (a - (d - back)) - (b + back)
    finite = xp.isfinite(d)
    return xp.where(finite | (a != b), d, 0.0), xp.where(finite, rest, 0.0)
