"""An equivariant energy of a few atoms, and its forces."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

positions = jax.random.normal(jax.random.key(0), (4, 3))
weights = jax.random.normal(jax.random.key(1), (8,))
senders, receivers = jnp.triu_indices(4, 1)


def energy(positions, weights):
    """A sum over pairs, of harmonics and a smooth embedding of the distance."""
    edges = positions[receivers] - positions[senders]
    harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", edges, True).array
    lengths = jnp.sqrt(jnp.sum(edges**2, -1))
    radial = e3nn.soft_one_hot_linspace(
        lengths, start=0.0, end=3.0, number=8, basis="smooth_finite", cutoff=True
    )
    cut = e3nn.soft_envelope(lengths, 4.0) + e3nn.sus(3.0 - lengths)
    return jnp.sum((radial @ weights * cut)[:, None] * harmonics**2)


forces = -jax.grad(energy)(positions, weights)
for _step in range(2):
    weights = weights - 0.01 * jax.grad(lambda w: energy(positions, w))(weights)
print(forces)
