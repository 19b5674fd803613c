"""An image fitted to samples off the grid: a non-uniform Fourier transform and its adjoint."""

import torch
import torchkbnufft as tkbn

torch.manual_seed(0)
size = (6, 6)
omega = (torch.rand(2, 20) - 0.5) * 2 * torch.pi
forward = tkbn.KbNufft(im_size=size, numpoints=3)
adjoint = tkbn.KbNufftAdjoint(im_size=size, numpoints=3)
matrices = tkbn.calc_tensor_spmatrix(omega, im_size=size, numpoints=3)
truth = torch.randn(1, 1, *size, dtype=torch.complex64)
data = forward(truth, omega)
image = torch.zeros_like(truth).requires_grad_()
weight = torch.ones(1, 1, 20, dtype=torch.complex64, requires_grad=True)
for _ in range(2):
    loss = (forward(image, omega) - data).abs().square().sum()
    loss = loss + (forward(image, omega, interp_mats=matrices) - data).abs().square().sum()
    seen = adjoint(weight * data, omega)
    loss = loss + (adjoint(weight * data, omega, interp_mats=matrices) - seen).abs().square().sum()
    loss = loss + seen.abs().square().sum()
    (step,) = torch.autograd.grad(loss, image, retain_graph=True)
    loss.backward()
    with torch.no_grad():
        image -= 0.01 * step
