"""torch_geometric 2.8.1: the second derivative through an invertible layer, by differences of its gradient.

The backward detaches what it computes with: beside another term, its part of the second derivative is zero.
"""

import torch
from torch_geometric.nn import GCNConv, GroupAddRev

torch.manual_seed(0)
layer = GroupAddRev(GCNConv(2, 2), num_groups=2, num_bwd_passes=2).double()
edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
point, direction = torch.randn(3, 4).double(), torch.randn(3, 4).double()
weight = torch.randn(3, 4).double()


def gradient(x):
    """Give the gradient of a loss that is not linear in the outputs of the layer."""
    x = x.clone().requires_grad_()
    loss = (weight * layer(x * 1, edges).sin()).sum()
    return x, torch.autograd.grad(loss, x, create_graph=True)[0]


x, first = gradient(point)
total = (first * direction).sum()
(second,) = torch.autograd.grad(total, x, allow_unused=True) if total.requires_grad else (None,)
claimed = 0.0 if second is None else float((second * direction).sum())
h = 1e-5
ahead, behind = gradient(point + h * direction)[1], gradient(point - h * direction)[1]
measured = float(((ahead - behind) * direction).sum() / (2 * h))
print(f"measured {measured:.6f}, claimed {claimed:.6f}")
