"""A chain of labels: its partition function, sampled and sparse."""

import torch
import torch_struct
from torch_struct.semirings import EntropySemiring, LogSemiring, SparseMaxSemiring

torch.manual_seed(0)
scores = torch.randn(2, 4, 3, 3, requires_grad=True)
chain = torch_struct.LinearChain
total = chain(LogSemiring).sum(scores).sum() + chain(EntropySemiring).sum(scores).sum()
total.backward()
sparse = chain(SparseMaxSemiring).marginals(scores)
sampled = torch_struct.LinearChainCRF(scores).sample((2,))
print(total.item(), sparse.sum().item(), sampled.shape)
