"""GPyTorch 1.15.2: the second derivative of `ComputePredictiveUpdates`, by differences of its gradient."""

import torch
from gpytorch.variational.variational_strategy import ComputePredictiveUpdates
from torch.autograd import grad

torch.manual_seed(0)
root = torch.linalg.cholesky(torch.eye(3, dtype=torch.float64) * 2 + 0.3)
others = [torch.randn(shape, dtype=torch.float64) for shape in ((3, 4), (3, 3), (3,))]
direction = torch.randn(3, 4, dtype=torch.float64)


def slope(x, create_graph=False):
    """Give the derivative of the sum of squares of both outputs with respect to the second argument."""
    x = x.detach().requires_grad_()
    outputs = ComputePredictiveUpdates.apply(
        root.clone().requires_grad_(), x, *(o.clone() for o in others[1:])
    )
    total = sum(o.square().sum() for o in outputs)
    return (grad(total, x, create_graph=create_graph)[0] * direction).sum(), x


h = 1e-5
measured = (slope(others[0] + h * direction)[0] - slope(others[0] - h * direction)[0]) / (2 * h)
first, at = slope(others[0], create_graph=True)
print(f"measured {measured:.6f}, claimed {(grad(first, at)[0] * direction).sum():.6f}")
