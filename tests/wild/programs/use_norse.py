"""A spiking network of leaky cells, and thresholds with other surrogates."""

import norse.torch as norse
import torch
from norse.torch.functional.threshold import threshold

torch.manual_seed(0)
data = torch.rand(6, 4, 8)
network = norse.SequentialState(
    torch.nn.Linear(8, 6),
    norse.LIFCell(norse.LIFParameters(v_th=torch.tensor(0.2), method="super", alpha=torch.tensor(100.0))),
    torch.nn.Linear(6, 3),
    norse.LIFCell(norse.LIFParameters(v_th=torch.tensor(0.2), method="tanh", alpha=torch.tensor(5.0))),
    norse.LICell(),
)
optimiser = torch.optim.SGD(network.parameters(), 0.1)
for _step in range(2):
    state = None
    for x in data:
        out, state = network(x, state)
    potential = network[0](data[0])
    spikes = sum(threshold(potential, method, 1.0) for method in ("triangle", "heavi_erfc", "circ"))
    loss = out.square().mean() + spikes.mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
