"""Discrete choices by a straight-through sample, and a logarithm that is safe at zero."""

import torch
from pyro.distributions import RelaxedBernoulliStraightThrough, RelaxedOneHotCategoricalStraightThrough
from pyro.ops.special import safe_log

torch.manual_seed(0)
logits = torch.randn(5, requires_grad=True)
rates = torch.rand(3, 4, requires_grad=True)
values = torch.tensor([1.0, 2.0, 3.0, 4.0])
optimizer = torch.optim.SGD([logits, rates], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    flags = RelaxedBernoulliStraightThrough(torch.tensor(0.5), logits=logits).rsample()
    picked = RelaxedOneHotCategoricalStraightThrough(torch.tensor(0.5), probs=rates.softmax(-1)).rsample()
    entropy = -(rates.softmax(-1) * safe_log(rates.softmax(-1))).sum()
    loss = (flags.sum() - 2) ** 2 + ((picked * values).sum(-1) - 2).square().sum() - 0.1 * entropy
    loss.backward()
    optimizer.step()
