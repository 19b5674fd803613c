"""pytorch-tabnet 4.1.0: where an output is zero, the second derivative of its entmax is not a number."""

import torch
from pytorch_tabnet.sparsemax import entmax15

weights = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
x = torch.tensor([[1.0, 0.3, -3.0]], dtype=torch.float64, requires_grad=True)


def gradient(x, create_graph=False):
    """The gradient of a weighted sum."""
    return torch.autograd.grad((entmax15(x, -1) * weights).sum(), x, create_graph=create_graph)[0]


step = torch.tensor([[1e-5, 0.0, 0.0]], dtype=torch.float64)
measured = (gradient(x + step) - gradient(x - step)).mul(weights).sum() / 2e-5
(claimed,) = torch.autograd.grad((gradient(x, create_graph=True) * weights).sum(), x)
print("measured", measured.item(), "claimed", claimed[0, 0].item())
