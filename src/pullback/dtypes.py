"""What is known of dtypes by their names."""

from __future__ import annotations

import numpy as np

ROUNDOFF = {
    "float64": 2.0**-53,
    "complex128": 2.0**-53,
    "float32": 2.0**-24,
    "complex64": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}


def is_complex(dtype: np.dtype[np.generic]) -> bool:
    """Tell whether entries of this dtype are two reals."""
    return bool(dtype.name.startswith("complex"))


def is_real_or_complex(dtype: np.dtype[np.generic]) -> bool:
    """Tell whether a derivative with respect to this dtype exists."""
    return dtype.name in ROUNDOFF
