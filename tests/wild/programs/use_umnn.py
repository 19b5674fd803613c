"""A monotone network: the integral of one that is positive."""

import torch
from UMNN import MonotonicNN

torch.manual_seed(0)
net = MonotonicNN(3, [8, 8], nb_steps=20)
optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
x, h = torch.randn(6, 1), torch.randn(6, 2)
target = torch.sigmoid(2 * x) + h[:, :1]
for _step in range(2):
    optimiser.zero_grad()
    torch.nn.functional.mse_loss(net(x, h), target).backward()
    optimiser.step()
