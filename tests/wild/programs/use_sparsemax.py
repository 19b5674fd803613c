"""A classifier over sparse probabilities."""

import torch
from sparsemax import Sparsemax

torch.manual_seed(0)
x, labels = torch.randn(12, 5), torch.randint(0, 4, (12,))
model = torch.nn.Sequential(torch.nn.Linear(5, 4), Sparsemax(dim=-1))
optimiser = torch.optim.Adam(model.parameters(), 1e-2)
for _step in range(3):
    loss = (model(x) - torch.nn.functional.one_hot(labels, 4)).square().sum(1).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
