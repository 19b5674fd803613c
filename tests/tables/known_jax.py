"""What is truly wrong in JAX's own functions (0.10), shown without this library.

Each reproduction gives what JAX claims and what is true. One that agrees again is to be taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special


def spence_above_one() -> tuple[Any, Any]:
    """Between one and two, a branch that is not taken has a logarithm of a negative number: NaN."""
    x = jnp.float32(1.5)
    return jax.grad(jax.scipy.special.spence)(x), jnp.log(x) / (1 - x)


KNOWN: dict[str, Callable[[], tuple[Any, Any]]] = {
    "jax.scipy.special.spence(p)": spence_above_one,
}
