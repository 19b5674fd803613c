"""A fit of a curve and a root, differentiated through the solution."""

import jax
import jax.numpy as jnp
import lineax
import optimistix

times = jnp.linspace(0.0, 1.0, 8)
data = 2.0 * jnp.exp(-3.0 * times)


def residuals(params, scale):
    """How far a curve is from the data."""
    return params[0] * jnp.exp(-params[1] * times) - scale * data


def best(scale):
    """The rate of the best curve."""
    solver = optimistix.LevenbergMarquardt(rtol=1e-6, atol=1e-6)
    return optimistix.least_squares(residuals, solver, jnp.array([1.5, 2.0]), args=scale).value.sum()


def root(a):
    """A root of x = cos(a x), and the norm of a solve with it."""
    solver = optimistix.Newton(rtol=1e-6, atol=1e-6)
    x = optimistix.root_find(lambda x, a: x - jnp.cos(a * x), solver, jnp.float32(0.5), args=a).value
    solved = lineax.linear_solve(lineax.MatrixLinearOperator(jnp.eye(2) * (1 + x)), jnp.ones(2)).value
    return x + optimistix.two_norm({"x": solved, "y": x}) + optimistix.rms_norm(solved)


print(jax.grad(best)(jnp.float32(1.0)), jax.grad(root)(jnp.float32(1.0)))
