"""A root whose slope is bounded."""

import jax
import jax.numpy as jnp
import kfac_jax

x = jnp.array([0.5, 2.0, 1e-3])
print(jax.grad(lambda x: kfac_jax.utils.stable_sqrt(x).sum())(x))
