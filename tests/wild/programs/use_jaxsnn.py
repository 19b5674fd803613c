"""Spikes of a layer, with the slope of a smooth one."""

import jax
import jax.numpy as jnp
from jaxsnn.discrete.functional.threshold import superspike

w = jax.random.normal(jax.random.key(0), (5, 3))
inputs = jax.random.bernoulli(jax.random.key(1), 0.4, (6, 5)).astype(float)


def rate(w):
    def step(voltage, spikes):
        voltage = 0.9 * voltage + spikes @ w
        out = superspike(voltage - 1.0)
        return voltage - out, out

    return jax.lax.scan(step, jnp.zeros(3), inputs)[1].mean()


print(jax.grad(rate)(w))
