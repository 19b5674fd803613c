"""Hyperparameters of a ridge regression by implicit differentiation, and projections."""

import jax
import jax.numpy as jnp
import jaxopt
from jaxopt import isotonic, perturbations
from jaxopt.projection import projection_box_section, projection_simplex

keys = jax.random.split(jax.random.key(0), 3)
x, y = jax.random.normal(keys[0], (12, 3)), jax.random.normal(keys[1], (12,))


def ridge(weights, penalty):
    """The inner objective."""
    return jnp.mean((x @ weights - y) ** 2) + jnp.exp(penalty) * jnp.sum(weights**2)


solver = jaxopt.LBFGS(fun=ridge, maxiter=50, tol=1e-6, implicit_diff=True)


def outer(penalty):
    """The error of the weights that a penalty gives."""
    weights = solver.run(jnp.zeros(3), penalty).params
    return jnp.mean((x @ weights - 1.1 * y) ** 2)


penalty = jnp.float32(-1.0)
for _step in range(2):
    penalty = penalty - 0.1 * jax.grad(outer)(penalty)


def share(v):
    """Weights on the simplex, and in a box whose sum is given."""
    simplex = projection_simplex(v)
    section = projection_box_section(v, (0.0, 0.6, jnp.ones(4), 1.0))
    return jnp.sum(simplex**2) + jnp.sum(section**2)


v = jnp.array([0.3, 0.8, -0.1, 0.4])
for _step in range(2):
    v = v - 0.1 * jax.grad(share)(v)
perturbed = perturbations.make_perturbed_argmax(
    lambda s: jax.nn.one_hot(jnp.argmax(s), 4), num_samples=20, sigma=0.5
)
print(jax.grad(lambda s: perturbed(s, jax.random.PRNGKey(2)) @ jnp.arange(4.0))(v))
print(jax.grad(lambda s: jnp.sum(isotonic.isotonic_l2_pav(s) ** 2))(v))
