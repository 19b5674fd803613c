"""How arguments reach a rule: arrays, integers, keys, statics, keywords, modules."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb
from pullback.errors import HostError, UnsupportedInputError


def test_integers_and_statics_need_no_slot_and_no_nondiff_argnums(mode):
    @pb.custom_gradient
    def take(x, index, axis=0, *, times=1):
        def grad(dy):
            return jnp.zeros_like(x).at[index].add(times * dy)

        return times * jnp.take(x, index, axis=axis), grad

    x, index = jnp.array([1.0, 2.0, 3.0]), jnp.array([0, 2, 2])
    got = mode(jax.grad(lambda x, i: take(x, index=i, times=5).sum()))(x, index)
    assert got.tolist() == [5.0, 0.0, 10.0]
    assert mode(lambda x: jax.jvp(lambda x: take(x, index), (x,), (x,))[1])(x).tolist() == [1.0, 3.0, 3.0]
    batched = jax.vmap(lambda i: jax.grad(lambda x: take(x, i, axis=0).sum())(x))(index)
    np.testing.assert_array_equal(batched, np.eye(3)[[0, 2, 2]])


def test_a_random_key_is_an_argument_without_a_gradient(mode):
    @pb.custom_gradient
    def dropout(x, key):
        kept = jax.random.bernoulli(key, 0.5, x.shape)
        return x * kept, lambda dy: dy * kept

    x, key = jnp.arange(1.0, 9.0), jax.random.key(3)
    kept = jax.random.bernoulli(key, 0.5, x.shape).astype(x.dtype)
    np.testing.assert_array_equal(mode(jax.grad(lambda x, k: dropout(x, k).sum()))(x, key), kept)
    np.testing.assert_array_equal(
        mode(lambda x, k: jax.jvp(lambda x: dropout(x, k), (x,), (x,))[1])(x, key), x * kept
    )
    assert not mode(jax.hessian(lambda x: dropout(x, key).sum()))(x).any()


class Scale(eqx.Module):
    w: jax.Array
    name: str = eqx.field(static=True)
    activation: Any = jnp.tanh


def test_an_equinox_module_is_an_argument_whose_gradient_is_a_module():
    @pb.custom_gradient
    def applied(module, x):
        def grad(dy):
            return eqx.tree_at(lambda m: m.w, module, dy * x), dy * module.w

        return module.w * x, grad

    module, x = Scale(jnp.array([2.0, 3.0]), "scale"), jnp.array([5.0, 7.0])
    for mode in (lambda f: f, eqx.filter_jit):
        got = mode(eqx.filter_grad(lambda m: applied(m, x).sum()))(module)
        assert isinstance(got, Scale)
        assert got.w.tolist() == [5.0, 7.0]


def test_numpy_arrays_and_floats_join_their_neighbours():
    @pb.custom_gradient
    def product(x, y):
        return x * y, lambda dy: (dy * y, dy * x)

    y = np.array([2.0, 3.0])
    got = jax.grad(lambda x: product(x, y).sum())(jnp.ones(2))
    assert got.tolist() == [2.0, 3.0]


def test_what_jax_has_no_arrays_of_is_refused_by_name():
    @pb.custom_gradient
    def f(x, words):
        return x, lambda dy: dy

    with pytest.raises(UnsupportedInputError, match="`words`"):
        f(jnp.ones(2), np.array(["a", "b"]))


def test_two_frameworks_in_one_call_are_refused():
    import tensorflow as tf

    @pb.custom_gradient
    def f(x, y):
        return x, lambda dy: dy

    with pytest.raises(HostError, match="`x` is a JAX tensor and `y` a TensorFlow tensor"):
        f(jnp.ones(2), tf.ones(2))
