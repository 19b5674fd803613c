"""A neural differential equation, trained by the adjoint method and with an event."""

import torch
from torchdiffeq import odeint_adjoint, odeint_event

torch.manual_seed(0)


class Field(torch.nn.Module):
    """A small vector field."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).double()

    def forward(self, t, y):
        return self.net(y)


field = Field()
start = torch.tensor([1.0, 0.0], dtype=torch.float64)
times = torch.linspace(0, 1, 5, dtype=torch.float64)
target = torch.stack([torch.cos(times), torch.sin(times)], 1)
optimiser = torch.optim.Adam(field.parameters(), 1e-2)
for _step in range(2):
    loss = (odeint_adjoint(field, start, times, rtol=1e-8, atol=1e-8) - target).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


class Fall(torch.nn.Module):
    """A ball that falls."""

    def __init__(self):
        super().__init__()
        self.gravity = torch.nn.Parameter(torch.tensor(-9.8, dtype=torch.float64))

    def forward(self, t, state):
        position, velocity = state
        return velocity, torch.ones_like(position) * self.gravity


ball = Fall()
state = (torch.tensor([10.0], dtype=torch.float64), torch.tensor([0.0], dtype=torch.float64))
hit, _ = odeint_event(
    ball,
    state,
    torch.tensor(0.0, dtype=torch.float64),
    event_fn=lambda t, y: y[0],
    odeint_interface=odeint_adjoint,
)
hit.backward()
