"""What the checker sees of single values: which leaves of a call are tensors, their arrays, their names."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.check.subject import Array
from pullback.errors import NoTensorError
from pullback.rule import written


def is_number_list(value: Any) -> bool:
    """Tell whether a value is a list of numbers that stands for an array."""
    leaves = tf.nest.flatten(value)
    return (
        isinstance(value, list)
        and bool(leaves)
        and all(isinstance(v, (int, float, complex)) and not isinstance(v, bool) for v in leaves)
        and any(not isinstance(v, int) for v in leaves)
    )


def is_tensor(leaf: Any) -> bool:
    """Tell whether a leaf is an input of the checker."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind not in "OSU"
    return tf.is_tensor(leaf) or isinstance(leaf, tf.Variable) or keras_variable(leaf)


def keras_variable(leaf: Any) -> bool:
    """Tell a weight of Keras."""
    return type(leaf).__module__.startswith("keras") and hasattr(leaf, "assign") and hasattr(leaf, "value")


def tensor_of(leaf: Any) -> tf.Tensor:
    """Make a tensor of a leaf."""
    if isinstance(leaf, (tf.SparseTensor, tf.RaggedTensor)):
        raise NoTensorError(f"a {type(leaf).__name__} has no flat array of entries to move; pass its values")
    return tf.convert_to_tensor(leaf)


def variable_of(leaf: Any) -> tf.Variable:
    """Give TensorFlow's variable behind a weight."""
    return leaf.value if keras_variable(leaf) else leaf


def array_of(value: Any) -> Array:
    """Give the array of a tensor."""
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def array_or_none(value: Any) -> Array | None:
    """Give the array of a tensor that may be missing."""
    return None if value is None else array_of(value)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep TensorFlow's log from advising on retracing: the checker compiles many functions once each."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


def paths_of(label: str, value: Any) -> list[str]:
    """Name every leaf of an argument."""
    flat = tf.nest.flatten_with_tuple_paths(value) if hasattr(tf.nest, "flatten_with_tuple_paths") else None
    if flat is None:
        count = len(tf.nest.flatten(value))
        return [label] if not tf.nest.is_nested(value) else [f"{label}[{i}]" for i in range(count)]
    return [label + "".join(f"[{p!r}]" for p in path) for path, _ in flat]


def captured_by(function: Any) -> tuple[str, ...]:
    """Name the floating tensors in the closure of a function."""
    try:
        cells = inspect.getclosurevars(written(function)).nonlocals
    except (TypeError, ValueError):
        return ()
    return tuple(
        name
        for name, value in cells.items()
        if tf.is_tensor(value) and (value.dtype.is_floating or value.dtype.is_complex)
    )
