"""Learned filtering between a wavelet transform and its inverse, in one and two dimensions."""

import torch
from pytorch_wavelets import (
    DTCWTForward,
    DTCWTInverse,
    DWT1DForward,
    DWT1DInverse,
    DWTForward,
    DWTInverse,
    ScatLayer,
)

torch.manual_seed(0)
image = torch.randn(1, 2, 16, 16)
target = torch.randn(1, 2, 16, 16)
gain = torch.nn.Parameter(torch.ones(()))
forward, inverse = DWTForward(J=2, wave="db2", mode="zero"), DWTInverse(wave="db2", mode="zero")
signal, back = DWT1DForward(J=1, wave="db1"), DWT1DInverse(wave="db1")
complex_forward, complex_inverse = DTCWTForward(J=2), DTCWTInverse()
scatter = ScatLayer()
optimiser = torch.optim.SGD([gain], 1e-2)
for _step in range(2):
    low, high = forward(image * gain)
    loss = (inverse((low, [h * gain for h in high])) - target).square().mean()
    low, high = signal((image * gain)[0])
    loss = loss + back((low, high)).square().mean()
    low, high = complex_forward(image * gain)
    loss = loss + (complex_inverse((low, high)) - target).square().mean()
    loss = loss + scatter(image * gain).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
