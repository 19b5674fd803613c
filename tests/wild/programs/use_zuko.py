"""Normalising flows: monotonic, integrated and continuous."""

import torch
import zuko

torch.manual_seed(0)
data = torch.randn(16, 2) * torch.tensor([1.0, 0.5])
flows = [
    zuko.flows.NAF(2, transforms=1, hidden_features=(8,)),
    zuko.flows.UNAF(2, transforms=1, hidden_features=(8,)),
    zuko.flows.CNF(2, hidden_features=(8,)),
]
for flow in flows:
    optimiser = torch.optim.Adam(flow.parameters(), 1e-3)
    for _step in range(2):
        loss = -flow().log_prob(data).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
flows[0]().rsample((4,)).square().mean().backward()
