"""A spiking network over ten steps, with two of the surrogates of the library."""

import snntorch as snn
import torch
from snntorch import functional, surrogate

torch.manual_seed(0)
inputs, labels = torch.rand(10, 4, 8), torch.tensor([0, 1, 2, 1])
first, second = torch.nn.Linear(8, 6), torch.nn.Linear(6, 3)
hidden = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid(slope=25))
output = snn.Leaky(beta=0.8, spike_grad=surrogate.atan())
extra = snn.Synaptic(alpha=0.9, beta=0.8, spike_grad=surrogate.sigmoid())
optimiser = torch.optim.Adam([*first.parameters(), *second.parameters()], 1e-2)

for _step in range(2):
    v1, v2 = hidden.init_leaky(), output.init_leaky()
    current, v3 = extra.init_synaptic()
    spikes = []
    for x in inputs:
        s1, v1 = hidden(first(x), v1)
        s3, current, v3 = extra(s1, current, v3)
        s2, v2 = output(second(s1 + s3), v2)
        spikes.append(s2)
    loss = functional.ce_rate_loss()(torch.stack(spikes), labels)
    loss = loss + functional.ce_temporal_loss()(torch.stack(spikes), labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
