"""A layer whose output solves a quadratic program."""

import torch
from qpth.qp import QPFunction

torch.manual_seed(0)
lower = torch.nn.Parameter(torch.tril(torch.rand(3, 3, dtype=torch.float64)))
g = torch.nn.Parameter(torch.rand(4, 3, dtype=torch.float64) - 0.5)
x = torch.randn(2, 3, dtype=torch.float64)
target = torch.randn(2, 3, dtype=torch.float64)
optimizer = torch.optim.SGD([lower, g], lr=0.1)
empty = torch.empty(0, dtype=torch.float64)
for _ in range(2):
    optimizer.zero_grad()
    q = lower @ lower.T + torch.eye(3, dtype=torch.float64)
    h = torch.ones(4, dtype=torch.float64)
    solved = QPFunction(verbose=-1)(q, x, g, h, empty, empty)
    ((solved - target) ** 2).mean().backward()
    optimizer.step()
