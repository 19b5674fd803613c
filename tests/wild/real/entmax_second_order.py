"""entmax 1.3: second derivatives that are not those of the gradient, by differences of the gradient itself.

The backward of `entmax15` and `entmax_bisect` takes a root, or a power, of outputs that are exactly zero: its
derivative is not a number. The losses keep the gradient as a constant, so their second derivative is zero.
"""

import entmax
import torch
from torch.autograd import grad

x = torch.tensor([[1.0, 0.3, -2.0, 0.1]], dtype=torch.float64)
direction = torch.tensor([[0.3, -0.2, 0.1, 0.5]], dtype=torch.float64)
weights = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
target = torch.tensor([1])
functions = {
    "entmax15": lambda x: (entmax.entmax15(x, dim=1) * weights).sum(),
    "entmax_bisect": lambda x: (entmax.entmax_bisect(x, alpha=1.4, dim=1) * weights).sum(),
    "sparsemax_loss": lambda x: entmax.sparsemax_loss(x, target).sum(),
    "entmax15_loss": lambda x: entmax.entmax15_loss(x, target).sum(),
    "entmax_bisect_loss": lambda x: entmax.entmax_bisect_loss(x, target, 1.4).sum(),
}


def slope(f, x, create_graph=False):
    """Give the derivative of f at x along the direction."""
    x = x.detach().requires_grad_()
    return (grad(f(x), x, create_graph=create_graph)[0] * direction).sum(), x


for name, f in functions.items():
    h = 1e-5
    measured = (slope(f, x + h * direction)[0] - slope(f, x - h * direction)[0]) / (2 * h)
    first, at = slope(f, x, create_graph=True)
    claimed = (grad(first, at)[0] * direction).sum() if first.requires_grad else torch.tensor(0.0)
    print(f"{name}: measured {measured:.6f}, claimed {claimed:.6f}")
