"""Where was the heat? A field is found from a blurred, noisy picture of its future.

The simulator is NumPy: heat spreads over a square for a while, by a Fourier transform. PyTorch cannot see
into it. `pb.external` makes it an operation, and its adjoint, which is the simulator itself, makes it
differentiable.

    u(T) = F⁻¹ exp(−k²T) F u(0)        du(0) = F⁻¹ exp(−k²T) F du(T)
"""

import sys

import numpy as np
import torch

import pullback as pb

SIZE, TIME = 32, 1.5
k = 2 * np.pi * np.fft.fftfreq(SIZE)
DECAY = np.exp(-(k[:, None] ** 2 + k[None, :] ** 2) * TIME)


@pb.example(torch.linspace(0, 1, SIZE * SIZE, dtype=torch.float64).reshape(SIZE, SIZE))
@pb.external(output=lambda start: start)
def heat(start):
    return np.fft.ifft2(DECAY * np.fft.fft2(start)).real


@heat.pullback
def _(dend):
    return np.fft.ifft2(DECAY * np.fft.fft2(dend)).real


def truth():
    """A ring and a bar."""
    x, y = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    radius = np.hypot(x - 11, y - 12)
    return ((radius > 4) & (radius < 7)) * 1.0 + ((abs(x - 23) < 2) & (abs(y - 20) < 8)) * 0.8


def roughness(u):
    """Total variation: few and sharp edges are likely."""
    across, down = u[1:] - u[:-1], u[:, 1:] - u[:, :-1]
    return torch.sqrt(across**2 + 1e-6).sum() + torch.sqrt(down**2 + 1e-6).sum()


def main(steps=100):
    """Find the field; give what the picture shows."""
    rng = np.random.default_rng(0)
    true = truth()
    measured = heat(true) + 0.005 * rng.normal(size=true.shape)
    target = torch.tensor(measured)
    found = torch.zeros(SIZE, SIZE, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([found], lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((heat(found) - target) ** 2).sum() + 0.002 * roughness(found)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found = found.detach().numpy()
    blurred, sharp = np.abs(measured - true).mean(), np.abs(found - true).mean()
    print(f"mean error: {blurred:.3f} as measured, {sharp:.3f} as found")
    assert losses[-1] < losses[0] / 20
    assert sharp < 0.7 * blurred
    return {"what it was": true, "what is measured": measured, "what is found": found}


def picture(shown, path):
    """Draw the three fields."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    for axis, (title, field) in zip(axes, shown.items()):
        axis.imshow(field, cmap="inferno", vmin=0, vmax=1)
        axis.set(title=title, xticks=[], yticks=[])
    figure.savefig(path)


if __name__ == "__main__":
    result = main()
    if sys.argv[1:]:
        picture(result, sys.argv[1])
