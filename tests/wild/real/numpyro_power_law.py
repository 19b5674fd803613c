"""NumPyro 0.22.0: the gradient of `DoublyTruncatedPowerLaw.log_prob` against differences, in float64."""

import jax

jax.config.update("jax_enable_x64", True)
import numpyro.distributions as dist  # noqa: E402

at = {"x": 2.0, "alpha": -1.5, "low": 1.0, "high": 4.0}


def log_prob(x, alpha, low, high):
    """Give the logarithm of the density."""
    return dist.DoublyTruncatedPowerLaw(alpha, low, high).log_prob(x)


h = 1e-6
claimed = jax.grad(log_prob, (0, 1, 2, 3))(*at.values())
for k, name in enumerate(at):
    above, below = ([v + s * (i == k) for i, v in enumerate(at.values())] for s in (h, -h))
    measured = (log_prob(*above) - log_prob(*below)) / (2 * h)
    print(f"{name}: measured {measured:.6f}, claimed {claimed[k]:.6f}")
