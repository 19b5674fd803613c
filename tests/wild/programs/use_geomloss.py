"""Move points by kernel norms between samples."""

import torch
from geomloss import SamplesLoss

torch.manual_seed(0)
y = torch.randn(7, 2)
for name in ("gaussian", "laplacian", "energy"):
    x = torch.randn(6, 2, requires_grad=True)
    loss = SamplesLoss(name, blur=0.5, backend="tensorized")
    optimizer = torch.optim.SGD([x], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        value = loss(x, y)
        value.backward()
        optimizer.step()
    print(name, round(value.item(), 4))
