"""The host is found from the data, and only among frameworks that are already imported."""

import subprocess
import sys

import numpy as np
import pytest

import pullback as pb


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_body_that_names_no_framework_gives_numpy_for_numpy():
    done = run(
        "import numpy as np, pullback as pb, sys\n"
        "f = pb.custom_gradient(lambda x: (2 * x, lambda dy: 2 * dy))\n"
        "y = f(np.ones(3))\n"
        "assert type(y) is np.ndarray and y.tolist() == [2, 2, 2]\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr


def test_arrays_go_to_the_framework_that_the_body_names():
    import jax.numpy as jnp
    import torch

    def by_helper(x):
        return torch.sin(x)

    in_jax = pb.custom_gradient(lambda x: (jnp.sin(x), lambda dy: dy * jnp.cos(x)))
    in_torch = pb.custom_gradient(lambda x: (by_helper(x), lambda dy: dy))
    assert isinstance(in_jax(np.ones(3)), jnp.ndarray)
    assert isinstance(in_torch(np.ones(3)), torch.Tensor)


def test_a_body_that_answers_in_another_framework_is_refused():
    import jax.numpy as jnp
    import torch

    f = pb.custom_gradient(lambda x: (jnp.sin(np.asarray(x)), lambda dy: dy))
    with pytest.raises(pb.errors.HostError, match="given PyTorch tensors, and returned one of JAX"):
        f(torch.ones(3))


def test_two_frameworks_in_one_call_are_refused_by_name():
    import jax.numpy as jnp
    import tensorflow as tf

    f = pb.custom_gradient(lambda x, w: (x, lambda dy: (dy, None)))
    with pytest.raises(pb.errors.HostError, match="`x` is a TensorFlow tensor and `w` a JAX tensor"):
        f(tf.ones(3), w=jnp.ones(3))


def test_unbroadcast_works_on_numpy_alone():
    assert pb.unbroadcast(np.ones([4, 3], np.float32), like=np.zeros(3, np.float32)).tolist() == [4.0] * 3


def test_unbroadcast_refuses_what_was_not_broadcast():
    with pytest.raises(pb.errors.CotangentShapeError, match="to which that of `like` broadcasts"):
        pb.unbroadcast(np.ones([4, 3]), like=np.zeros(2))


def test_an_elementwise_rule_that_names_no_framework_gives_numpy_for_numpy():
    cube = pb.elementwise(lambda x: x * x * x, lambda x: 3 * x * x)
    assert cube(np.array([2.0])).tolist() == [8.0]
    assert cube(2.0) == 8.0
