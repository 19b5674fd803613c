"""A small network in two stages of a pipeline, each recomputed in the backward pass."""

import torch
from torchgpipe import GPipe

torch.manual_seed(0)
stages = torch.nn.Sequential(
    torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(4, 2)
)
model = GPipe(stages, balance=[2, 2], devices=["cpu", "cpu"], chunks=2, checkpoint="always")
optimiser = torch.optim.SGD(model.parameters(), 0.1)
x, wanted = torch.randn(4, 4), torch.randn(4, 2)

for _step in range(2):
    loss = torch.nn.functional.mse_loss(model(x), wanted)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
