"""What is truly wrong in JAX's own functions (0.10), shown without this library.

Each reproduction gives what JAX claims and what is true. One that agrees again is to be taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import jax.scipy.stats
import numpy as np


def spence_above_one() -> tuple[Any, Any]:
    """Between one and two, a branch that is not taken has a logarithm of a negative number: NaN."""
    x = jnp.float32(1.5)
    return jax.grad(jax.scipy.special.spence)(x), jnp.log(x) / (1 - x)


def entropy_of_few() -> tuple[Any, Any]:
    """Probabilities that underflow are masked behind their logarithm: NaN at small means in float32.

    In float64 it is the second derivative, by the cotangent of the first.
    """
    mu = 0.3
    k = np.arange(1, 30)
    log_p = -mu + k * np.log(mu) - np.cumsum(np.log(k))
    # d/dµ of -Σ p·log p, with dp/dµ = p·(k/µ - 1); the term of k = 0 is µ·exp(-µ).
    true = (1 - mu) * np.exp(-mu) - (np.exp(log_p) * (k / mu - 1) * (log_p + 1)).sum()
    return jax.grad(jax.scipy.stats.poisson.entropy)(jnp.float32(mu)), jnp.float32(true)


KNOWN: dict[str, Callable[[], tuple[Any, Any]]] = {
    "jax.scipy.special.spence(p)": spence_above_one,
    "jax.scipy.stats.poisson.entropy(p)": entropy_of_few,
}
