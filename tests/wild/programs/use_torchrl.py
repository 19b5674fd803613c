"""A policy with a bounded normal distribution, as in soft actor-critic."""

import torch
from torchrl.modules import TanhNormal
from torchrl.modules.distributions.utils import safeatanh, safetanh

torch.manual_seed(0)
states = torch.randn(16, 4)
policy = torch.nn.Linear(4, 4)
critic = torch.nn.Linear(6, 1)
optimiser = torch.optim.Adam([*policy.parameters(), *critic.parameters()], 1e-2)
for _step in range(2):
    mean, spread = policy(states).chunk(2, -1)
    distribution = TanhNormal(mean, spread.exp(), safe_tanh=True)
    action = distribution.rsample()
    value = critic(torch.cat([states, action], -1))[:, 0]
    squashed = safetanh(mean, 1e-4)
    back = safeatanh(squashed, 1e-4)
    loss = (0.1 * distribution.log_prob(action) - value).mean() + (back - 0.5).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
