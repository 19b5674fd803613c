"""Functions whose residuals are computed again in the backward pass, and not kept."""
