"""A neural stochastic differential equation, trained by the adjoint method."""

import torch
import torchsde

torch.manual_seed(0)


class Equation(torch.nn.Module):
    """Diagonal noise."""

    noise_type, sde_type = "diagonal", "stratonovich"

    def __init__(self):
        super().__init__()
        self.drift = torch.nn.Linear(2, 2)
        self.spread = torch.nn.Parameter(torch.tensor([0.2, 0.1]))

    def f(self, t, y):
        return torch.tanh(self.drift(y))

    def g(self, t, y):
        return self.spread * torch.ones_like(y)


equation = Equation()
start, times = torch.full((3, 2), 0.1), torch.linspace(0, 1, 4)
optimiser = torch.optim.SGD(equation.parameters(), 1e-2)
for step in range(2):
    noise = torchsde.BrownianInterval(0.0, 1.0, size=(3, 2), entropy=step)
    path = torchsde.sdeint_adjoint(equation, start, times, bm=noise, dt=0.1, method="midpoint")
    optimiser.zero_grad()
    path[-1].square().mean().backward()
    optimiser.step()
