"""GPyTorch 1.15.2: the gradient of `log_normal_cdf` against differences of it, in float64."""

import gpytorch
import torch

z = torch.tensor(
    [-8.0, -6.0, -3.0, -1.5, -1.0, -0.5, 0.0, 0.6, 3.26], dtype=torch.float64, requires_grad=True
)
(claimed,) = torch.autograd.grad(gpytorch.log_normal_cdf(z).sum(), z)
h = 1e-5
with torch.no_grad():
    measured = (gpytorch.log_normal_cdf(z + h) - gpytorch.log_normal_cdf(z - h)) / (2 * h)
for at, m, c in zip(z.tolist(), measured.tolist(), claimed.tolist()):
    print(f"z = {at:5.2f}: measured {m:.8f}, claimed {c:.8f}, apart by {abs(m - c) / abs(m):.1e}")
