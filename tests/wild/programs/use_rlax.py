"""Q-learning with a clipped gradient."""

import jax
import jax.numpy as jnp
import rlax


def loss(w, obs, action, reward, after):
    td = jax.vmap(rlax.q_learning)(obs @ w, action, reward, jnp.full(4, 0.9), after @ w)
    return jnp.mean(rlax.l2_loss(rlax.clip_gradient(td, -1.0, 1.0)))


keys = jax.random.split(jax.random.key(0), 3)
w = jax.random.normal(keys[0], (5, 3))
obs, after = jax.random.normal(keys[1], (4, 5)), jax.random.normal(keys[2], (4, 5))
print(jax.grad(loss)(w, obs, jnp.array([0, 1, 2, 0]), jnp.full(4, 3.0), after))
