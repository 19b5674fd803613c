"""A censored model fitted by variational inference, and power laws that are truncated."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.distributions.util import log1mexp
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

data = dist.DoublyTruncatedPowerLaw(-1.5, 1.0, 4.0).sample(jax.random.key(0), (20,))


def model(observed):
    """Give the exponents priors, and let the data be power laws between two bounds."""
    alpha = numpyro.sample("alpha", dist.Normal(-1.5, 0.5))
    numpyro.sample("x", dist.DoublyTruncatedPowerLaw(alpha, 1.0, 4.0), obs=observed)


svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.02), Trace_ELBO())
state = svi.init(jax.random.key(1), data)
for _step in range(2):
    state, loss = svi.update(state, data)


def survival(rate):
    """Give the likelihood of having failed before the times of the data."""
    return -log1mexp(-rate * data).sum()


rate = jnp.float32(0.7)
for _step in range(2):
    rate = rate - 0.01 * jax.grad(survival)(rate)


def truncated(alpha, low):
    """Give the likelihood of a power law with one bound, and a quantile of one with two."""
    lower = dist.LowerTruncatedPowerLaw(alpha - 1.0, low).log_prob(data).sum()
    return lower + dist.DoublyTruncatedPowerLaw(alpha, low, 5.0).icdf(0.3)


print(loss, jax.grad(truncated, (0, 1))(-1.2, 0.5))
