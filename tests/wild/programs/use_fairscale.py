"""Layers that are computed again in the backward pass."""

import torch
from fairscale.nn import checkpoint_wrapper

torch.manual_seed(0)
net = torch.nn.Sequential(
    checkpoint_wrapper(torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh())),
    checkpoint_wrapper(torch.nn.Linear(8, 3)),
)
optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(6, 5, requires_grad=True), torch.randn(6, 3)
for _step in range(2):
    loss = torch.nn.functional.mse_loss(net(x), y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(loss.item())
