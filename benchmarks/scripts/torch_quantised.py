"""Training with quantised weights: one rule differs on purpose, the other clips what goes back."""

import torch
from torch import nn

import pullback as pb


@pb.custom_gradient(differs="straight-through")
def quantise(w):
    def grad(dy):
        return dy

    return torch.round(w * 16) / 16, grad


class Softsign(torch.autograd.Function):
    """x / (1 + |x|)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy / (1 + x.abs()) ** 2


torch.manual_seed(0)
weights = nn.Parameter(torch.randn(16, 8) / 4)
out = nn.Parameter(torch.randn(8, 1) / 3)
features = torch.randn(512, 16)
target = torch.tanh(features[:, :3].sum(1, keepdim=True))
optimiser = torch.optim.SGD([weights, out], 0.1)
for _ in range(300):
    found = Softsign.apply(features @ quantise(weights)) @ quantise(out)
    loss = ((found - target) ** 2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"loss {loss.item():.3f}")
