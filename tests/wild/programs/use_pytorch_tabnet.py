"""Sparse attention over the columns of a table, as TabNet selects them."""

import torch
from pytorch_tabnet import sparsemax

torch.manual_seed(0)
table, labels = torch.randn(6, 5), torch.randint(0, 2, (6,))
select, classify = torch.nn.Linear(5, 5), torch.nn.Linear(5, 2)
gate = torch.nn.Linear(5, 5)
optimizer = torch.optim.SGD([*select.parameters(), *classify.parameters(), *gate.parameters()], lr=0.1)
sparse, soft = sparsemax.Sparsemax(dim=-1), sparsemax.Entmax15(dim=-1)
for _ in range(3):
    optimizer.zero_grad()
    mask = sparse(select(table)) + soft(select(table)) + sparsemax.entmoid15(gate(table))
    torch.nn.functional.cross_entropy(classify(mask * table), labels).backward()
    optimizer.step()
