"""What is known of dtypes by their names: one table, one row a dtype. Everything else is read off it.

Frameworks agree on the names; `ml_dtypes` teaches NumPy those that it lacks, its guests.
"""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple

import numpy as np

Kind = Literal["floating", "complex", "integer", "other"]


class Dtype(NamedTuple):
    """Hold what is known of one dtype; the numbers are relative."""

    kind: Kind
    roundoff: float = 0.0  # of one operation; 0 where the checker moves no such number
    demanded: float = 1e-6  # the resolution that a pass of the checker must reach
    target: float = 1e-3  # the one at which it stops to look for a better step
    linear: float = 1e-4  # how far rounding moves a linear map
    wide: str = ""  # the dtype for sums of squares, where its own has too few digits or too small a range
    carrier: str = ""  # the integers of its size, for a guest of NumPy
    computes: bool = True  # whether frameworks compute in it, or only keep numbers in it


# What numbers are kept in and not computed in: too coarse for the checker to judge a gradient by.
_SMALL = Dtype("floating", wide="float32", carrier="uint8", computes=False)
_FLOAT8 = ("e3m4", "e4m3", "e4m3fn", "e4m3fnuz", "e4m3b11fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")

TABLE: dict[str, Dtype] = {
    "float64": Dtype("floating", 2.0**-53, 1e-6, 1e-9, 1e-9),
    "float32": Dtype("floating", 2.0**-24, 1e-3, 2e-5, 1e-4),
    "bfloat16": Dtype("floating", 2.0**-8, 1e-1, linear=1e-1, wide="float32", carrier="int16"),
    "float16": Dtype("floating", 2.0**-11, 3e-2, linear=2e-2, wide="float32"),
    "complex128": Dtype("complex", 2.0**-53, 1e-6, 1e-9, 1e-9),
    "complex64": Dtype("complex", 2.0**-24, 1e-3, 2e-5, 1e-4),
    **{f"float8_{layout}": _SMALL for layout in _FLOAT8},
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"), _SMALL),
    "float4_e2m1fn_x2": Dtype("floating", computes=False),
    "float128": Dtype("floating", computes=False),
    "complex256": Dtype("complex", computes=False),
    "complex32": Dtype("complex", computes=False),
    **{f"{sign}int{bits}": Dtype("integer") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"{sign}int{bits}": Dtype("integer", computes=False) for sign in ("", "u") for bits in range(1, 8)},
    "bool": Dtype("other"),
}

ROUNDOFF = {name: row.roundoff for name, row in TABLE.items() if row.roundoff}
# by roundoff, which is all that numerics see
DEMANDED = {row.roundoff: row.demanded for row in TABLE.values() if row.roundoff}
TARGET = {row.roundoff: row.target for row in TABLE.values() if row.roundoff}
WIDE = {name: row.wide for name, row in TABLE.items() if row.wide}
CARRIER = {name: row.carrier for name, row in TABLE.items() if row.carrier}
COMPUTING = tuple(name for name, row in TABLE.items() if row.kind == "floating" and row.computes)
LONG = frozenset(n for n, row in TABLE.items() if row.roundoff == 2.0**-53 or n.endswith("int64"))  # 64 bits


def kind(name: str) -> Kind:
    """Tell the kind of number of a dtype."""
    row = TABLE.get(name)
    return "other" if row is None else row.kind


def linear(name: str) -> float:
    """Say how far, relatively, rounding moves a linear map in a dtype."""
    row = TABLE.get(name)
    return 1e-4 if row is None else row.linear


@functools.cache
def of_numpy(name: str) -> np.dtype[Any] | None:
    """Give NumPy's dtype of a name, its own or a guest's; None if it has none."""
    try:
        return np.dtype(name)
    except TypeError:
        try:
            import ml_dtypes
        except ImportError:
            return None
        guest = getattr(ml_dtypes, name, None)
        return None if guest is None else np.dtype(guest)


@functools.cache
def roundoff_of(dtype: np.dtype[Any]) -> float:
    """Give the roundoff of one operation in a dtype of NumPy's; 0 where the checker moves no such number."""
    # a name is looked up once: NumPy writes it anew each time
    return ROUNDOFF.get(dtype.name, 0.0)


def is_guest(dtype: np.dtype[Any]) -> bool:
    """Tell whether NumPy has a dtype from elsewhere: it can be cast, and little else."""
    return dtype.name in CARRIER


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Tell whether entries of this dtype are two reals."""
    return dtype.kind == "c"


def is_real_or_complex(dtype: np.dtype[Any]) -> bool:
    """Tell whether the checker moves entries of this dtype."""
    return roundoff_of(dtype) > 0


def double(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Give the dtype of most digits: that of a pair for a complex one."""
    return np.dtype(np.complex128 if is_complex(dtype) else np.float64)
