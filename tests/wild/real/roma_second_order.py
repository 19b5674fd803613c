"""roma 1.8.0: the second derivative of the nearest rotation, by differences of its gradient.

The backward computes with factors that are outputs without a gradient: what comes through them is missing.
"""

import roma
import torch

torch.manual_seed(0)
point, direction = torch.randn(2, 3, 3).double(), torch.randn(2, 3, 3).double()


def gradient(m):
    """Give the gradient of one entry of each rotation."""
    m = m.clone().requires_grad_()
    return m, torch.autograd.grad(roma.procrustes(m)[:, 0, 1].sum(), m, create_graph=True)[0]


m, first = gradient(point)
(second,) = torch.autograd.grad((first * direction).sum(), m)
claimed = float((second * direction).sum())
h = 1e-5
ahead, behind = gradient(point + h * direction)[1], gradient(point - h * direction)[1]
measured = float(((ahead - behind).detach() * direction).sum() / (2 * h))
print(f"measured {measured:.6f}, claimed {claimed:.6f}")
