"""Solves, log-determinants and roots of a kernel matrix by its operators, with iterations and without."""

import linear_operator
import torch
from linear_operator.operators import DenseLinearOperator, ToeplitzLinearOperator

torch.manual_seed(0)
points = torch.rand(10, 2, dtype=torch.float64)
scale = torch.nn.Parameter(torch.tensor(0.7, dtype=torch.float64))
y = torch.randn(10, 1, dtype=torch.float64)


def kernel():
    """Give the kernel matrix of the points."""
    squares = (points[:, None] - points[None]).square().sum(-1)
    return DenseLinearOperator((-squares / scale).exp()).add_jitter(0.5)


matrix = kernel()
fit, logdet = matrix.inv_quad_logdet(y, logdet=True)
(fit + logdet).backward()
with (
    linear_operator.settings.fast_computations(True, True, True),
    linear_operator.settings.max_cholesky_size(1),
):
    matrix = kernel()
    quadratic, logdet = matrix.inv_quad_logdet(y, logdet=True)
    (quadratic + logdet).backward()
    matrix = kernel()
    (matrix.solve(y).square().sum() + (matrix @ y).sum()).backward()
    kernel().root_decomposition().to_dense().sum().backward()
column = torch.nn.Parameter(torch.tensor([2.0, 0.5, 0.25, 0.1], dtype=torch.float64))
(ToeplitzLinearOperator(column) @ torch.ones(4, dtype=torch.float64)).square().sum().backward()
