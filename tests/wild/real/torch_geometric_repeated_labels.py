"""torch_geometric 2.8.1: a sparse cross entropy in which one label stands twice, by differences.

The value counts both; the backward subtracts by an index, which counts an entry that is named twice once.
"""

import torch
from torch_geometric.utils.cross_entropy import sparse_cross_entropy

torch.manual_seed(0)
logits, labels = torch.randn(2, 3).double(), torch.tensor([[0, 0, 1], [1, 1, 2]])
x = logits.clone().requires_grad_()
sparse_cross_entropy(x, labels).backward()
claimed = float(x.grad[0, 1])
h, step = 1e-6, torch.zeros(2, 3).double()
step[0, 1] = h
ahead, behind = sparse_cross_entropy(logits + step, labels), sparse_cross_entropy(logits - step, labels)
measured = float(ahead - behind) / (2 * h)
print(f"measured {measured:.6f}, claimed {claimed:.6f}")
