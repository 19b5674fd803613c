"""GPyTorch 1.15.2: the second derivative of a kernel by its lengthscale, by differences of the gradient.

`RBFCovariance` and `MaternCovariance` save a product that was computed beside the forward. It has no history,
so the second derivative lacks what comes from it.
"""

import gpytorch
import torch
from torch.autograd import grad

x = torch.linspace(0, 1, 6, dtype=torch.float64)[:, None]
for kernel in (gpytorch.kernels.RBFKernel().double(), gpytorch.kernels.MaternKernel(nu=1.5).double()):
    raw = kernel.raw_lengthscale
    h, start = 1e-5, raw.detach().clone()
    slopes = []
    for step in (h, -h):
        raw.data = start + step
        slopes.append(grad(kernel(x, x).to_dense().sum(), raw)[0].sum())
    raw.data = start
    first = grad(kernel(x, x).to_dense().sum(), raw, create_graph=True)[0].sum()
    measured, claimed = (slopes[0] - slopes[1]) / (2 * h), grad(first, raw)[0].sum()
    print(f"{type(kernel).__name__}: measured {measured:.6f}, claimed {claimed:.6f}")
