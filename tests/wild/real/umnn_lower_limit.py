"""UMNN: the gradient of an integral by what conditions it, where the lower limit is not zero."""

import torch
from UMNN import ParallelNeuralIntegral

torch.manual_seed(0)


class Positive(torch.nn.Module):
    """exp(-h x²), which has no parameters but one that it multiplies by."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([1.0]))

    def forward(self, x, h):
        """The integrand."""
        return self.scale * torch.exp(-h * x**2)


net, h = Positive(), torch.tensor([[0.7]])
low, high = torch.tensor([[1.0]]), torch.tensor([[2.0]])


def integral(h):
    """The integral from one to two."""
    flat = torch.cat([p.view(-1) for p in net.parameters()])
    return ParallelNeuralIntegral.apply(low, high, net, flat, h, 50).sum()


leaf = h.clone().requires_grad_()
(claimed,) = torch.autograd.grad(integral(leaf), leaf)
with torch.no_grad():
    measured = (integral(h + 1e-2) - integral(h - 1e-2)) / 2e-2
print("claimed", claimed.item(), "measured", measured.item())
assert abs(claimed.item() / measured.item() - 1) > 0.05
