"""A line of a spectrum: its profile, and how that moves with the width."""

import jax
import jax.numpy as jnp
from exojax.opacity.lpf.lpf import hjert

x = jnp.array([0.1, 1.0, 3.0])
print(jax.grad(lambda p: hjert(p[0], p[1]))(jnp.array([0.5, 0.3])))
print(jax.vmap(jax.grad(hjert, argnums=(0, 1)), (0, None))(x, 0.2))
