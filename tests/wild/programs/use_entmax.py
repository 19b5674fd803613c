"""A small classifier whose attention and loss are sparse."""

import entmax
import torch

torch.manual_seed(0)
x, labels = torch.randn(16, 6), torch.randint(0, 4, (16,))
score, head = torch.nn.Linear(6, 6), torch.nn.Linear(6, 4)
alpha = torch.nn.Parameter(torch.tensor(1.3))
losses = [entmax.SparsemaxLoss(), entmax.Entmax15Loss(), entmax.EntmaxBisectLoss(alpha=1.4, n_iter=40)]
optimiser = torch.optim.Adam([*score.parameters(), *head.parameters(), alpha], 1e-2)

for _step in range(3):
    scores = score(x)
    weights = entmax.sparsemax(scores, dim=1) + entmax.entmax15(scores, dim=1)
    weights = weights + entmax.entmax_bisect(scores, alpha, dim=1, n_iter=40)
    weights = weights + entmax.normmax_bisect(scores, alpha=3, dim=1, n_iter=40)
    logits = head(weights * x)
    loss = sum(each(logits, labels) for each in losses)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
