"""Filter a field on the sphere by its harmonics."""

import torch
from torch_harmonics import InverseRealSHT, RealSHT

torch.manual_seed(0)
forward, inverse = RealSHT(8, 16, grid="equiangular"), InverseRealSHT(8, 16, grid="equiangular")
field, target = torch.randn(2, 8, 16), torch.randn(2, 8, 16)
gains = torch.nn.Parameter(torch.ones(forward.lmax, 1))
optimizer = torch.optim.SGD([gains], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = torch.mean((inverse(forward(field) * gains) - target) ** 2)
    loss.backward()
    optimizer.step()
print(round(loss.item(), 4))
