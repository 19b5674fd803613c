"""Dtypes, as the array API has them: what two of them become, and of what kind they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.dtypes import CARRIER

_KINDS: dict[str, Callable[[Any], bool]] = {
    "bool": lambda dtype: dtype == tf.bool,
    "signed integer": lambda dtype: dtype.is_integer and not dtype.is_unsigned,
    "unsigned integer": lambda dtype: dtype.is_integer and dtype.is_unsigned,
    "integral": lambda dtype: dtype.is_integer,
    "real floating": lambda dtype: dtype.is_floating,
    "complex floating": lambda dtype: dtype.is_complex,
    "numeric": lambda dtype: dtype.is_integer or dtype.is_floating or dtype.is_complex,
}
_NUMBERS = (bool, int, float, complex)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Tell whether a dtype is of a kind: a dtype, a word of the standard, or a tuple of these."""
    dtype = tf.as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is no kind of dtype; the kinds are {', '.join(map(repr, _KINDS))}")
        return bool(_KINDS[kind](dtype))
    return bool(dtype == tf.as_dtype(kind))


def is_integral(dtype: Any) -> bool:
    """Tell whether sums of a dtype are sums of whole numbers."""
    return bool(dtype.is_integer or dtype == tf.bool)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Give the dtype that several become when they meet; Python numbers follow the others."""
    dtypes = [
        tf.as_dtype(given.dtype if hasattr(given, "dtype") else given)
        for given in arrays_and_dtypes
        if not isinstance(given, _NUMBERS)
    ]
    if not dtypes:
        raise ValueError("at least one argument of result_type must be an array or a dtype")
    return functools.reduce(_promoted, dtypes)


def _promoted(a: Any, b: Any) -> Any:
    if a == b:
        return a
    if {a, b} == {tf.float16, tf.bfloat16}:
        return tf.float32
    if tf.bfloat16 in (a, b):  # NumPy knows it only as a guest
        return next(dtype for dtype in (a, b) if dtype != tf.bfloat16)
    return tf.as_dtype(np.result_type(a.as_numpy_dtype, b.as_numpy_dtype))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Tell whether a tensor or dtype fits into a dtype without loss of range."""
    return bool(result_type(from_, to) == tf.as_dtype(to))


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    """Cast a tensor."""
    return tf.cast(x, dtype)


def finfo(dtype: Any, /) -> Any:
    """Tell the limits of a floating dtype: `eps`, `max`, `min`, `smallest_normal`."""
    known = tf.as_dtype(getattr(dtype, "dtype", dtype))
    if known.name in CARRIER:
        import ml_dtypes  # comes with TensorFlow

        return ml_dtypes.finfo(known.as_numpy_dtype)
    return np.finfo(known.as_numpy_dtype)


def iinfo(dtype: Any, /) -> Any:
    """Tell the limits of a whole dtype: `max` and `min`."""
    return np.iinfo(tf.as_dtype(getattr(dtype, "dtype", dtype)).as_numpy_dtype)


def both(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function of two tensors what the array API lets it take: a number, or two dtypes."""

    @functools.wraps(function, assigned=("__doc__", "__name__"), updated=())
    def promoted(x1: Any, x2: Any, /) -> Any:
        return function(*pair(x1, x2))

    del promoted.__wrapped__  # it takes other arguments
    return promoted


def pair(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Give two tensors one dtype; a Python number takes that of its neighbour."""
    if isinstance(x1, _NUMBERS):
        x2 = tf.convert_to_tensor(x2)
        return tf.convert_to_tensor(x1, x2.dtype), x2
    x1 = tf.convert_to_tensor(x1)
    if isinstance(x2, _NUMBERS):
        return x1, tf.convert_to_tensor(x2, x1.dtype)
    x2 = tf.convert_to_tensor(x2)
    if x1.dtype != x2.dtype:
        common = result_type(x1, x2)
        return tf.cast(x1, common), tf.cast(x2, common)
    return x1, x2
