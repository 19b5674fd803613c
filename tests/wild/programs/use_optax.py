"""A classifier with soft labels, gradients that are scaled, and weights kept on the simplex."""

import jax
import jax.numpy as jnp
import optax

keys = jax.random.split(jax.random.key(0), 4)
x = jax.random.normal(keys[0], (12, 5))
labels = jax.nn.softmax(jax.random.normal(keys[1], (12, 3)))
params = {"w": 0.1 * jax.random.normal(keys[2], (5, 3)), "mix": jnp.array([0.5, 0.2, 0.3])}
optimiser = optax.adam(1e-2)
state = optimiser.init(params)


def loss(params):
    """Cross-entropy of a mixture, which trains slowly."""
    mix = optax.projections.projection_simplex(optax.scale_gradient(params["mix"], 0.1))
    logits = x @ params["w"] * mix
    return optax.losses.kl_divergence(jax.nn.log_softmax(logits), labels).mean() - (
        optax.losses.safe_softmax_cross_entropy(logits, labels).mean() * 0.1
    )


for _step in range(3):
    value, grads = jax.value_and_grad(loss)(params)
    updates, state = optimiser.update(grads, state)
    params = optax.apply_updates(params, updates)
