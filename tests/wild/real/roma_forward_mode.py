"""roma 1.8.0: forward mode by dual numbers through a regularised projection.

The forward returns a view of its input, and the tangent that `jvp` returns is none: PyTorch refuses that.
"""

import roma
import torch
from torch.autograd import forward_ad

torch.manual_seed(0)
m = torch.randn(2, 3, 3).double()
for regularization in (0.0, 0.1):
    with forward_ad.dual_level():
        try:
            roma.procrustes(forward_ad.make_dual(m, torch.ones_like(m)), regularization=regularization)
            print(f"regularization {regularization}: there is a tangent")
        except RuntimeError as error:
            print(f"regularization {regularization}: {error}")
