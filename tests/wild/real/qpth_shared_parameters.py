"""qpth 0.0.18: what a batch shares gets the mean of the gradients over the batch, and not their sum.

Measured by differences of the solution; the same problem with a copy for each element is right.
"""

import torch
from qpth.qp import QPFunction

torch.manual_seed(0)
options = {"dtype": torch.float64}
q, g, h = torch.eye(2, **options), torch.rand(3, 2, **options), torch.full((3,), 0.1, **options)
p = -torch.rand(4, 2, **options) - 1
none = torch.empty(0, **options)


def total(h):
    """The sum of all solutions."""
    return QPFunction(verbose=-1)(q, p, g, h, none, none).sum()


step = 1e-4 * torch.ones(3, **options)
measured = (total(h + step) - total(h - step)).item() / 2e-4
for copies in (h, h.repeat(4, 1)):
    leaf = copies.clone().requires_grad_()
    (found,) = torch.autograd.grad(total(leaf), leaf)
    print(f"shape {tuple(copies.shape)}: measured {measured:.6f}, claimed {found.sum().item():.6f}")
