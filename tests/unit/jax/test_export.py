"""Programs that are exported and loaded again keep the gradient of a rule."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

import pullback as pb


@pb.custom_gradient(differs="seven")
def seven(x):
    return jnp.sin(x), lambda dy: 7 * dy


def test_an_exported_function_keeps_its_gradient():
    shape = jax.ShapeDtypeStruct((3,), jnp.float64)
    exported = export.export(jax.jit(lambda x: seven(x).sum()))(shape)
    loaded = export.deserialize(exported.serialize(vjp_order=1))
    x = jnp.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(loaded.call(x), jnp.sin(x).sum())
    assert jax.grad(loaded.call)(x).tolist() == [7.0, 7.0, 7.0]


def test_an_exported_function_may_have_symbolic_lengths():
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("n"), jnp.float64)
    exported = export.export(jax.jit(lambda x: seven(x).sum()))(shape)
    loaded = export.deserialize(exported.serialize(vjp_order=1))
    assert jax.grad(loaded.call)(jnp.ones(5)).tolist() == [7.0] * 5
