"""A spiking network that was converted from layers, and quantised weights."""

import sinabs.activation as activation
import sinabs.layers as layers
import torch

torch.manual_seed(0)
data, labels = torch.rand(4, 10, 6), torch.tensor([0, 1, 1, 0])
network = torch.nn.Sequential(
    torch.nn.Linear(6, 5),
    layers.LIF(
        tau_mem=20.0, spike_fn=activation.MultiSpike, surrogate_grad_fn=activation.SingleExponential()
    ),
    torch.nn.Linear(5, 2),
    layers.IAF(spike_fn=activation.SingleSpike, surrogate_grad_fn=activation.PeriodicExponential()),
)
optimiser = torch.optim.Adam(network.parameters(), 1e-2)
for _step in range(2):
    rate = activation.Quantize.apply(network(data) * 4).mean(1)
    loss = torch.nn.functional.cross_entropy(rate, labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    for module in network.modules():
        if hasattr(module, "reset_states"):
            module.reset_states()
