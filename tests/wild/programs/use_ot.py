"""Optimal transport between point clouds, as a loss."""

import ot
import torch

torch.manual_seed(0)
source = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
target = torch.randn(5, 2, dtype=torch.float64) + 1
weights = [torch.full((n,), 1 / n, dtype=torch.float64) for n in (6, 5)]
for _step in range(2):
    loss = ot.emd2(*weights, ot.dist(source, target))
    loss = loss + ot.gaussian.empirical_bures_wasserstein_distance(source, target, reg=0.1)
    loss = loss + ot.sliced_wasserstein_distance(source, target, n_projections=8, seed=0)
    loss.backward()
    with torch.no_grad():
        source -= 0.1 * source.grad
    source.grad = None
