"""Optimal transport between clouds as a loss, and a distance between normals."""

import jax
import jax.numpy as jnp
from ott.geometry import costs, pointcloud
from ott.math import matrix_square_root
from ott.math import utils as math
from ott.problems.linear import linear_problem
from ott.solvers.linear import implicit_differentiation, sinkhorn

keys = jax.random.split(jax.random.key(0), 3)
x, y = jax.random.normal(keys[0], (6, 2)), jax.random.normal(keys[1], (5, 2)) + 1
solver = sinkhorn.Sinkhorn(
    threshold=1e-4, max_iterations=200, implicit_diff=implicit_differentiation.ImplicitDiff()
)


def transport(x):
    """The regularised cost of moving a cloud to another, with the potentials' derivative."""
    geometry = pointcloud.PointCloud(x, y, epsilon=0.5)
    out = solver(linear_problem.LinearProblem(geometry))
    return out.reg_ot_cost + 0.1 * jnp.sum(out.f**2)


for _step in range(2):
    x = x - 0.1 * jax.grad(transport)(x)


def spread(x):
    """A root of a covariance, and smooth minima of norms."""
    root = matrix_square_root.sqrtm_only(jnp.cov(x.T) + 0.1 * jnp.eye(2))
    return jnp.sum(root) + math.softmin(math.norm(x, axis=1), 0.2, 0)


print(jax.grad(spread)(x), costs.SqEuclidean())
