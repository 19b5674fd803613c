"""The table of dtypes says what NumPy and the frameworks say."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
import torch

from pullback import dtypes


@pytest.mark.parametrize("name", dtypes.ROUNDOFF)
def test_roundoff_is_half_the_distance_to_the_next_number(name):
    assert dtypes.ROUNDOFF[name] == ml_dtypes.finfo(dtypes.of_numpy(name)).eps / 2


@pytest.mark.parametrize("name", dtypes.CARRIER)
def test_a_carrier_has_the_size_of_its_guest(name):
    assert np.dtype(dtypes.CARRIER[name]).itemsize == dtypes.of_numpy(name).itemsize


def test_kinds_are_those_of_pytorch():
    found = [d for d in vars(torch).values() if isinstance(d, torch.dtype)]
    for dtype in found:
        name = str(dtype).removeprefix("torch.")
        assert (dtypes.kind(name) == "floating") == dtype.is_floating_point, name
        assert (dtypes.kind(name) == "complex") == dtype.is_complex, name


def test_kinds_are_those_of_jax():
    for name in dtypes.TABLE:
        if hasattr(jnp, name):
            kinds = {"floating": jnp.floating, "complex": jnp.complexfloating, "integer": jnp.integer}
            expected = (k for k, base in kinds.items() if jnp.issubdtype(getattr(jnp, name), base))
            assert dtypes.kind(name) == next(expected, "other"), name


def test_kinds_are_those_of_tensorflow():
    for name in {d.name for d in vars(tf.dtypes).values() if isinstance(d, tf.DType)}:
        dtype = tf.as_dtype(name)
        assert (dtypes.kind(name) == "floating") == dtype.is_floating, name
        assert (dtypes.kind(name) == "complex") == dtype.is_complex, name
        assert (dtypes.kind(name) == "integer") == dtype.is_integer, name
