"""A reversible residual network."""

import revtorch
import torch

torch.manual_seed(0)
x, y = torch.randn(4, 8), torch.randn(4, 8)


def block():
    """Make one reversible block."""
    half = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(2)]
    return revtorch.ReversibleBlock(*half, split_along_dim=1)


body = revtorch.ReversibleSequence(torch.nn.ModuleList([block(), block()]))
head = torch.nn.Linear(8, 8)
optimiser = torch.optim.SGD([*body.parameters(), *head.parameters()], 0.1)
for _step in range(2):
    loss = (body(head(x)) - y).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
