"""How deep is a layer that runs until nothing changes?

A deep equilibrium layer is the fixed point of one step, z = tanh(W z + U x + b). Found by iterating, it
would keep every iteration for the gradient. `pb.implicit.fixed_point` takes any solver, and
differentiates the condition: the memory is that of one step, and the gradient does not depend on how the
solution was found.
"""

import sys

import numpy as np
import torch

import pullback as pb

WIDTH = 16


def step(z, x, w, u, b):
    return torch.tanh(z @ w.T + x @ u.T + b)


def unrolled(x, w, u, b):
    """Iterate; differentiated as it is, every iteration is kept."""
    z = torch.zeros(len(x), WIDTH, dtype=x.dtype)
    for _ in range(400):
        before, z = z, step(z, x, w, u, b)
        if (z - before).abs().max() < 1e-13:
            break
    return z


settled = pb.implicit.fixed_point(step, unrolled)


def kept(layer, *inputs):
    """Count the bytes that PyTorch keeps for the backward pass of a layer."""
    seen = {}

    def pack(tensor):
        seen[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(*inputs)
    return sum(seen.values())


def spirals(rng, count=120):
    label = rng.integers(0, 2, count)
    way = rng.uniform(0.1, 1, count)
    angle = 1.6 * np.pi * way + np.pi * label
    points = np.stack([way * np.cos(angle), way * np.sin(angle)], 1) * 2 + 0.04 * rng.normal(size=(count, 2))
    return torch.tensor(points), torch.tensor(label, dtype=torch.float64)


def main(steps=60):
    """Train a classifier of one such layer; give what the picture shows."""
    torch.manual_seed(0)
    x, label = spirals(np.random.default_rng(0))
    options = {"dtype": torch.float64, "requires_grad": True}
    w = (0.7 * torch.linalg.qr(torch.randn(WIDTH, WIDTH, dtype=torch.float64))[0]).requires_grad_(True)
    u, b = torch.randn(WIDTH, 2, **options), torch.zeros(WIDTH, **options)
    out = torch.randn(WIDTH, **options)
    optimizer = torch.optim.Adam([w, u, b, out], lr=0.02)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(settled(x, w, u, b) @ out, label)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            w *= min(1.0, 0.9 / float(torch.linalg.matrix_norm(w, 2)))  # one fixed point, always
        losses.append(loss.item())
    score = float(((settled(x, w, u, b) @ out > 0) == (label > 0)).double().mean())
    sizes = [kept(layer, x, w, u, b) for layer in (unrolled, settled)]
    print(
        f"{score:.0%} right; kept for the gradient: {sizes[0]} bytes unrolled, {sizes[1]} at the fixed point"
    )
    assert score > 0.97
    assert sizes[1] < sizes[0] / 10
    return {"net": lambda x: (settled(x, w, u, b) @ out).detach(), "x": x, "label": label, "sizes": sizes}


def picture(shown, path):
    """Draw what the layer thinks of the plane, and what it keeps."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", width_ratios=[1.3, 1])
    a, b = np.meshgrid(np.linspace(-2.4, 2.4, 90), np.linspace(-2.4, 2.4, 90))
    grid = torch.tensor(np.stack([a.ravel(), b.ravel()], 1))
    axes[0].contourf(a, b, torch.sigmoid(shown["net"](grid)).reshape(a.shape), levels=12, cmap="RdBu")
    axes[0].scatter(*shown["x"].T, c=shown["label"], cmap="RdBu", s=8, edgecolors="k", linewidths=0.3)
    axes[0].set(title="an equilibrium layer", xticks=[], yticks=[])
    axes[1].bar(
        ["unrolled", "fixed point"], [size / 1e6 for size in shown["sizes"]], color=["0.6", "tab:green"]
    )
    axes[1].set(title="kept for the gradient", ylabel="megabytes")
    figure.savefig(path)


if __name__ == "__main__":
    result = main()
    if sys.argv[1:]:
        picture(result, sys.argv[1])
