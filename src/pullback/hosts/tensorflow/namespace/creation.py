"""Tensors from nothing: the creation functions of the array API."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import tensorflow as tf


def asarray(obj: Any, /, *, dtype: Any = None, copy: Any = None) -> Any:
    """Make a tensor; Python floats become float32."""
    if tf.is_tensor(obj) or isinstance(obj, (np.ndarray, np.generic)):
        tensor = tf.convert_to_tensor(obj)
        return tf.identity(tensor) if dtype in (None, tensor.dtype) else tf.cast(tensor, dtype)
    return tf.convert_to_tensor(obj, dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """Count from start to stop, which is not included."""
    start, stop = (0, start) if stop is None else (start, stop)
    if dtype is None and builtins.all(isinstance(bound, int) for bound in (start, stop, step)):
        dtype = tf.int64
    return tf.range(start, stop, step, dtype)


def eye(n_rows: Any, n_cols: Any = None, /, *, k: int = 0, dtype: Any = tf.float32) -> Any:
    """Give ones on the k-th diagonal, and zeros elsewhere."""
    rows, columns = tf.range(n_rows)[:, None], tf.range(n_rows if n_cols is None else n_cols)[None, :]
    return tf.cast(tf.equal(columns - rows, k), dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """Give a tensor of one value."""
    value = tf.convert_to_tensor(fill_value) if dtype is None else _exact(fill_value, dtype)
    return tf.fill(_listed(shape), tf.cast(value, tf.int64) if _python_int(fill_value, dtype) else value)


def _python_int(value: Any, dtype: Any) -> builtins.bool:
    return dtype is None and isinstance(value, int) and not isinstance(value, builtins.bool)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None) -> Any:
    """Give a tensor of one value, shaped like another."""
    x = tf.convert_to_tensor(x)
    return tf.fill(tf.shape(x), _exact(fill_value, dtype or x.dtype))


def _exact(value: Any, dtype: Any) -> Any:
    """Make a tensor of a dtype; a Python number must not become a float32 on the way."""
    return tf.cast(value if tf.is_tensor(value) else np.asarray(value), dtype)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, endpoint: builtins.bool = True) -> Any:
    """Divide an interval evenly."""
    dtype = dtype or tf.float32
    points = tf.linspace(tf.cast(start, dtype), tf.cast(stop, dtype), num if endpoint else num + 1)
    return points if endpoint else points[:-1]


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """Give coordinate tensors."""
    return list(tf.meshgrid(*arrays, indexing=indexing))


def ones(shape: Any, *, dtype: Any = tf.float32) -> Any:
    """Give ones."""
    return tf.ones(_listed(shape), dtype or tf.float32)


def zeros(shape: Any, *, dtype: Any = tf.float32) -> Any:
    """Give zeros."""
    return tf.zeros(_listed(shape), dtype or tf.float32)


def ones_like(x: Any, /, *, dtype: Any = None) -> Any:
    """Give ones, shaped like another tensor."""
    return tf.ones_like(x, dtype)


def zeros_like(x: Any, /, *, dtype: Any = None) -> Any:
    """Give zeros, shaped like another tensor."""
    return tf.zeros_like(x, dtype)


def tril(x: Any, /, *, k: int = 0) -> Any:
    """Keep what is on and below the k-th diagonal."""
    return _where_diagonal(x, lambda offset: offset <= k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """Keep what is on and above the k-th diagonal."""
    return _where_diagonal(x, lambda offset: offset >= k)


def _where_diagonal(x: Any, keep: Any) -> Any:
    x = tf.convert_to_tensor(x)
    rows, columns = tf.shape(x)[-2], tf.shape(x)[-1]
    return tf.where(keep(tf.range(columns)[None, :] - tf.range(rows)[:, None]), x, tf.zeros_like(x))


def _listed(shape: Any) -> Any:
    return [shape] if isinstance(shape, int) else shape
