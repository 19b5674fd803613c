"""A spiking classifier with three of the surrogates."""

import torch
from spikingjelly.activation_based import functional, layer, neuron, surrogate

torch.manual_seed(0)
images, labels = torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0])
network = torch.nn.Sequential(
    layer.Conv2d(1, 2, 3),
    neuron.IFNode(surrogate_function=surrogate.ATan()),
    layer.Flatten(),
    layer.Linear(72, 8),
    neuron.LIFNode(surrogate_function=surrogate.Sigmoid()),
    layer.Linear(8, 3),
    neuron.ParametricLIFNode(surrogate_function=surrogate.PiecewiseQuadratic()),
)
optimiser = torch.optim.Adam(network.parameters(), 1e-2)
for _step in range(2):
    rate = sum(network(images) for _ in range(4)) / 4
    loss = torch.nn.functional.cross_entropy(rate, labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    functional.reset_net(network)
