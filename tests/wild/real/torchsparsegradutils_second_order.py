"""torchsparsegradutils 0.2.7: the second derivative of `sparse_mm`, by differences of its gradient.

The forward detaches both operands before it saves them: the second derivative lacks what comes through them.
"""

import torch
from torch.autograd import grad
from torchsparsegradutils import sparse_mm

torch.manual_seed(0)
matrix = torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)).to_sparse_coo()
x, direction = torch.randn(3, 2, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
values = matrix.coalesce().values()


def by_matrix(x, create_graph=False):
    """Give the derivative of sum(A x) by the entries of A, summed: it is linear in x."""
    x = x.detach().requires_grad_()
    entries = values.clone().requires_grad_()
    product = sparse_mm(torch.sparse_coo_tensor(matrix.coalesce().indices(), entries, (3, 3)), x)
    return grad(product.sum(), entries, create_graph=create_graph)[0].sum(), x


h = 1e-5
measured = (by_matrix(x + h * direction)[0] - by_matrix(x - h * direction)[0]) / (2 * h)
first, at = by_matrix(x, create_graph=True)
(second,) = grad(first, at, allow_unused=True) if first.requires_grad else (None,)
claimed = 0.0 if second is None else (second * direction).sum()
print(f"measured {measured:.6f}, claimed {claimed:.6f}")
