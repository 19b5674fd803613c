"""A graph network of invertible layers, with a sparse loss."""

import torch
from torch_geometric.nn import GCNConv, GroupAddRev
from torch_geometric.utils.cross_entropy import sparse_cross_entropy

torch.manual_seed(0)
nodes = torch.randn(6, 8)
edges = torch.tensor([[0, 1, 2, 3, 4, 5, 1], [1, 2, 3, 4, 5, 0, 0]])
first, layer = torch.nn.Linear(8, 8), GroupAddRev(GCNConv(4, 4), num_groups=2)
head = torch.nn.Linear(8, 6)
targets = torch.tensor([[0, 1, 2, 3, 3], [1, 2, 3, 4, 0]])
optimiser = torch.optim.Adam([*first.parameters(), *layer.parameters(), *head.parameters()], 1e-2)
for _step in range(2):
    logits = head(layer(first(nodes), edges))
    loss = sparse_cross_entropy(logits, targets)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
