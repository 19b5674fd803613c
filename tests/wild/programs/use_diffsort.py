"""Learn scores from orders, through a sorting network that is relaxed."""

import torch
from diffsort import DiffSortNet

torch.manual_seed(0)
x = torch.randn(6, 4, 3)
truth = x.sum(-1)
net = torch.nn.Linear(3, 1)
sorter = DiffSortNet("odd_even", 4, steepness=5.0, distribution="gaussian")
optimiser = torch.optim.Adam(net.parameters(), 1e-2)
order = torch.nn.functional.one_hot(truth.argsort(1), 4).transpose(1, 2).float()
for _step in range(3):
    _, permutation = sorter(net(x)[..., 0])
    loss = torch.nn.functional.binary_cross_entropy(permutation.clamp(1e-6, 1 - 1e-6), order)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
