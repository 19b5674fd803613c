"""Solves and products with a sparse matrix, whose gradient is sparse."""

import torch
from torchsparsegradutils import sparse_generic_solve, sparse_mm, sparse_triangular_solve

torch.manual_seed(0)
dense = torch.eye(5, dtype=torch.float64) * 3 + torch.diag(torch.rand(4, dtype=torch.float64), -1)
matrix = dense.to_sparse_coo().requires_grad_()
right = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
loss = sparse_mm(matrix, right).square().sum()
loss = loss + sparse_triangular_solve(matrix, right, upper=False).square().sum()
symmetric = (dense @ dense.T).to_sparse_csr().requires_grad_()
loss = loss + sparse_generic_solve(symmetric, right).square().sum()
loss.backward()
