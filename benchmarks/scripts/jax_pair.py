"""Two rules in forward mode: a norm that is safe at zero, and a clipped logarithm."""

import jax
import jax.numpy as jnp


@jax.custom_jvp
def length(x):
    return jnp.sqrt(jnp.sum(x * x, -1))


@length.defjvp
def length_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    n = length(x)
    return n, jnp.sum(x * t, -1) / jnp.where(n == 0, 1.0, n)


@jax.custom_jvp
def xlogx(x):
    return x * jnp.log(x)


xlogx.defjvps(lambda t, out, x: (1 + jnp.log(x)) * t)

points = jax.random.normal(jax.random.PRNGKey(1), (64, 3))
shares = jax.nn.softmax(points)


@jax.jit
def step(points, shares):
    g = jax.grad(lambda p: jnp.mean(length(p)))(points)
    h = jax.grad(lambda s: jnp.sum(xlogx(s)))(shares)
    return points - 0.01 * g, jnp.clip(shares - 1e-3 * h, 1e-3, 1.0)


for _ in range(300):
    points, shares = step(points, shares)
print(f"length {float(jnp.mean(length(points))):.3f}")
