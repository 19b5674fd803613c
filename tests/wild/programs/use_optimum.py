"""Training of a network with quantised weights and activations."""

import torch
from optimum.quanto import Calibration, qint8, quantize

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
quantize(net, weights=qint8, activations=qint8)
x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
with torch.no_grad(), Calibration(streamline=False):
    net(x)
net.train()
optimiser = torch.optim.SGD(net.parameters(), lr=0.05)
for _step in range(2):
    optimiser.zero_grad()
    out = net(x)
    loss = torch.nn.functional.cross_entropy(out.dequantize() if hasattr(out, "dequantize") else out, y)
    loss.backward()
    optimiser.step()
