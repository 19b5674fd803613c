"""A potential of distances, embedded smoothly."""

import torch
from e3nn.math import soft_one_hot_linspace, soft_unit_step

torch.manual_seed(0)
positions = torch.randn(5, 3, requires_grad=True)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.SiLU(), torch.nn.Linear(8, 1))
optimiser = torch.optim.Adam(net.parameters(), 1e-2)
rows, columns = torch.triu_indices(5, 5, 1)
for _step in range(2):
    lengths = (positions[rows] - positions[columns]).norm(dim=1)
    embedded = soft_one_hot_linspace(lengths, 0.0, 3.0, 8, basis="smooth_finite", cutoff=True)
    energy = (net(embedded)[:, 0] * soft_unit_step(3 - lengths)).sum()
    (force,) = torch.autograd.grad(energy, positions, create_graph=True)
    optimiser.zero_grad()
    (energy.square() + force.square().mean()).backward()
    optimiser.step()
