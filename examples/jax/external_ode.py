"""How do I differentiate an ordinary differential equation that SciPy solves?

With y' = f(y, p) and λ = dL/dy at the end, the adjoint runs backwards in time:
    λ' = −(∂f/∂y)ᵀ·λ        dp = ∫ (∂f/∂p)ᵀ·λ dt        dy₀ = λ(0)
so the gradient costs one more solve, however many parameters there are. JAX compiles what is around it.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import pullback as pb

END = 6.0
TIGHT = {"rtol": 1e-10, "atol": 1e-12, "method": "DOP853"}


def flow(y, p):
    """Rabbits and foxes (Lotka and Volterra)."""
    return np.array([p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]])


def pull_flow(back, y, p):
    """The two products with the derivatives of the flow."""
    a, b = back
    dy = np.array([a * (p[0] - p[1] * y[1]) + b * p[3] * y[1], -a * p[1] * y[0] + b * (p[3] * y[0] - p[2])])
    return dy, np.array([a * y[0], -a * y[0] * y[1], -b * y[1], b * y[0] * y[1]])


@pb.example(np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.4, 0.1]))
@pb.external(output=lambda y0: y0, cast=True, accuracy=1e-6)  # both directions are solved to a tolerance
def populations(y0, p):
    """How many there are at the end."""
    if not all(0 < value < 10 for value in (*y0, *p)):
        raise ValueError("numbers and rates are positive, and not huge")
    return solve_ivp(lambda t, y: flow(y, p), (0, END), y0, **TIGHT).y[:, -1]


@populations.pullback
def adjoint(dy, y0, p):
    """Solve for the state once more, and backwards along it for its adjoint and the integral."""
    state = solve_ivp(lambda t, y: flow(y, p), (0, END), y0, dense_output=True, **TIGHT).sol

    def backwards(t, z):
        to_y, to_p = pull_flow(z[:2], state(t), p)
        return -np.concatenate([to_y, to_p])

    z = solve_ivp(backwards, (END, 0), np.concatenate([dy, np.zeros(4)]), **TIGHT).y[:, -1]
    return z[:2], z[2:]


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    y0, p = jnp.array([1.0, 0.5]), jnp.array([1.1, 0.4, 0.4, 0.1])

    @jax.jit
    def loss(y0, p):
        return jnp.sum(populations(y0, p) ** 2)

    dy0, dp = jax.grad(loss, (0, 1))(y0, p)
    print("after", END, "years", populations(y0, p), "\ngradients", dy0, dp)
    h = 1e-5
    for i in range(4):
        coarse = (loss(y0, p.at[i].add(h)) - loss(y0, p.at[i].add(-h))) / (2 * h)
        assert abs(coarse - dp[i]) < 1e-5 * abs(dp[i])
    for i in range(2):
        coarse = (loss(y0.at[i].add(h), p) - loss(y0.at[i].add(-h), p)) / (2 * h)
        assert abs(coarse - dy0[i]) < 1e-5 * abs(dy0[i])
