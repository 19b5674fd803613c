"""What the checker sees of single values: which leaves of a call are tensors, and their arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.errors import NoTensorError
from pullback.hosts.keras import is_weight
from pullback.view.subject import Array


def is_variable(leaf: Any) -> bool:
    """Tell whether a leaf is a variable, of TensorFlow's or of Keras'."""
    return isinstance(leaf, tf.Variable) or is_weight(type(leaf))


def tensor_of(leaf: Any) -> tf.Tensor:
    """Make a tensor of a leaf."""
    if isinstance(leaf, (tf.SparseTensor, tf.RaggedTensor)):
        raise NoTensorError(f"a {type(leaf).__name__} has no flat array of entries to move; pass its values")
    return tf.convert_to_tensor(leaf)


def variable_of(leaf: Any) -> tf.Variable:
    """Give TensorFlow's variable behind a weight."""
    return leaf.value if is_weight(type(leaf)) else leaf


def array_of(value: Any) -> Array:
    """Give the array of a tensor."""
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


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
