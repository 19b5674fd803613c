"""Learn a time-varying filter of speech, sample by sample."""

import torch
from torchlpc import sample_wise_lpc

torch.manual_seed(0)
x, target = torch.randn(2, 9, dtype=torch.double), torch.randn(2, 9, dtype=torch.double)
coefficients = torch.nn.Parameter(0.1 * torch.randn(2, 9, 3, dtype=torch.double))
start = torch.nn.Parameter(torch.randn(2, 3, dtype=torch.double))
optimizer = torch.optim.SGD([coefficients, start], lr=0.05)
for _ in range(3):
    optimizer.zero_grad()
    loss = torch.mean((sample_wise_lpc(x, coefficients, start) - target) ** 2)
    loss.backward()
    optimizer.step()
print(round(loss.item(), 4))
