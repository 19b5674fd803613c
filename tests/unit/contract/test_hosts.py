"""The host of a call is found among several frameworks, and they are not mixed in one."""

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb


def test_arrays_go_to_the_framework_that_the_body_names():
    def by_helper(x):
        return torch.sin(x)

    in_jax = pb.custom_gradient(lambda x: (jnp.sin(x), lambda dy: dy * jnp.cos(x)))
    in_torch = pb.custom_gradient(lambda x: (by_helper(x), lambda dy: dy))
    assert isinstance(in_jax(np.ones(3)), jnp.ndarray)
    assert isinstance(in_torch(np.ones(3)), torch.Tensor)


def test_a_body_that_answers_in_another_framework_is_refused():
    f = pb.custom_gradient(lambda x: (jnp.sin(np.asarray(x)), lambda dy: dy))
    with pytest.raises(pb.errors.HostError, match="given PyTorch tensors, and returned one of JAX"):
        f(torch.ones(3))


def test_two_frameworks_in_one_call_are_refused_by_name():
    f = pb.custom_gradient(lambda x, w: (x, lambda dy: (dy, None)))
    with pytest.raises(pb.errors.HostError, match="`x` is a TensorFlow tensor and `w` a JAX tensor"):
        f(tf.ones(3), w=jnp.ones(3))
