"""TensorFlow's functions that draw, by the names of its operations, as functions of a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def _integers(seed: Any, shape: Any, minval: Any, maxval: Any) -> Any:
    low = tf.convert_to_tensor(minval)
    return tf.random.stateless_uniform(shape, seed, minval=low, maxval=maxval, dtype=low.dtype)


def _gamma(seed: Any, shape: Any, alpha: Any) -> Any:
    return tf.random.stateless_gamma(tf.concat([shape, tf.shape(alpha)], 0), seed, alpha, dtype=alpha.dtype)


def _poisson(seed: Any, shape: Any, rate: Any, dtype: Any = tf.int64) -> Any:
    return tf.random.stateless_poisson(tf.concat([shape, tf.shape(rate)], 0), seed, rate, dtype=dtype)


def _categories(seed: Any, logits: Any, num_samples: Any, output_dtype: Any = tf.int64) -> Any:
    return tf.random.stateless_categorical(logits, num_samples, seed, dtype=output_dtype)


def _parameterized(seed: Any, shape: Any, *moments: Any) -> Any:
    return tf.random.stateless_parameterized_truncated_normal(shape, seed, *moments)


def _of_shape(native: Callable[..., Any]) -> Callable[..., Any]:
    return lambda seed, shape, dtype: native(shape, seed, dtype=dtype)


STATELESS: dict[str, Callable[..., Any]] = {
    "multinomial": _categories,
    "parameterized_truncated_normal": _parameterized,
    "random_gamma": _gamma,
    "random_poisson_v2": _poisson,
    "random_shuffle": lambda seed, value: tf.random.experimental.stateless_shuffle(value, seed),
    "random_standard_normal": _of_shape(tf.random.stateless_normal),
    "random_uniform": _of_shape(tf.random.stateless_uniform),
    "random_uniform_int": _integers,
    "truncated_normal": _of_shape(tf.random.stateless_truncated_normal),
}
