"""A monotone function: the integral of a positive network."""

import torch
from UMNN import MonotonicNN

torch.manual_seed(0)
net = MonotonicNN(3, [10, 10], nb_steps=10)
x = torch.randn(6, 1).abs()
h = torch.randn(6, 2)
target = torch.sin(x)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(2):
    optimizer.zero_grad()
    ((net(x, h)[:, :1] - target) ** 2).mean().backward()
    optimizer.step()
