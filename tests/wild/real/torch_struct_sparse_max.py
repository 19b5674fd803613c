"""torch_struct 0.5: the value is that of another function than the one whose gradient is given."""

import torch
from torch_struct.semirings import SparseMaxSemiring

x = torch.tensor([0.3, 0.1], dtype=torch.float64, requires_grad=True)
(given,) = torch.autograd.grad(SparseMaxSemiring.sum(x), x)
h = 1e-6
for i, step in enumerate(h * torch.eye(2, dtype=torch.float64)):
    ahead, behind = SparseMaxSemiring.sum(x + step), SparseMaxSemiring.sum(x - step)
    print(f"x[{i}]: by differences {(ahead - behind).item() / (2 * h):.6f}, given {given[i].item():.6f}")
