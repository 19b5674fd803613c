"""Can a network be trained whose weights are −1, 0 and 1?

Rounding has no slope. `pb.straight_through` rounds on the way forward and passes the gradient on as it
is, so that the weights behind it learn which integer to be. Rounding a network that was trained without
it does worse.
"""

import sys

import numpy as np
import torch

import pullback as pb


@pb.example(torch.tensor([-1.7, -0.2, 0.4, 0.9]))
def ternary(w):
    return quantise(w)


quantise = pb.straight_through(lambda w: torch.clamp(torch.round(w), -1, 1))


def moons(rng, count=400):
    """Two half circles."""
    angle = rng.uniform(0, np.pi, count)
    label = rng.integers(0, 2, count)
    x = np.where(label, 1 - np.cos(angle), np.cos(angle))
    y = np.where(label, 0.5 - np.sin(angle), np.sin(angle))
    points = np.stack([x, y], 1) + 0.08 * rng.normal(size=(count, 2))
    return torch.tensor(points, dtype=torch.float32), torch.tensor(label, dtype=torch.float32)


class Net(torch.nn.Module):
    """Two hidden layers; `cast` says what becomes of the weights."""

    def __init__(self, cast):
        super().__init__()
        torch.manual_seed(1)
        self.sizes = [(3, 24), (25, 24), (25, 1)]  # one more input each: the bias
        self.weights = torch.nn.ParameterList(torch.randn(s) * 0.3 for s in self.sizes)
        self.cast = cast

    def forward(self, x):
        for i, w in enumerate(self.weights):
            x = torch.cat([x, torch.ones_like(x[:, :1])], 1) @ self.cast(w)
            x = torch.tanh(x) if i < 2 else x
        return x[:, 0]


def train(net, x, label, steps):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(net(x), label).backward()
        optimizer.step()
    return net


def accuracy(net, x, label):
    with torch.no_grad():
        return float(((net(x) > 0) == (label > 0)).float().mean())


def main(steps=250):
    """Train with all digits, and through the rounding; give what the picture shows."""
    x, label = moons(np.random.default_rng(0))
    full = train(Net(lambda w: w), x, label, steps)
    through = train(Net(ternary), x, label, steps)
    rounded = Net(ternary)
    rounded.load_state_dict(full.state_dict())  # the same weights, rounded afterwards
    nets = {"float weights": full, "rounded afterwards": rounded, "trained through rounding": through}
    scores = {name: accuracy(net, x, label) for name, net in nets.items()}
    print({name: round(score, 3) for name, score in scores.items()})
    assert scores["trained through rounding"] > 0.95
    assert scores["trained through rounding"] > scores["rounded afterwards"]
    assert set(np.unique(quantise(through.weights[1].detach()).numpy())) <= {-1.0, 0.0, 1.0}
    return {"nets": nets, "scores": scores, "x": x, "label": label}


def picture(shown, path):
    """Draw what each network thinks of the plane."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    a, b = np.meshgrid(np.linspace(-1.5, 2.5, 120), np.linspace(-1, 1.5, 120))
    grid = torch.tensor(np.stack([a.ravel(), b.ravel()], 1), dtype=torch.float32)
    for axis, (name, net) in zip(axes, shown["nets"].items()):
        with torch.no_grad():
            axis.contourf(a, b, torch.sigmoid(net(grid)).reshape(a.shape), levels=12, cmap="RdBu", alpha=0.8)
        axis.scatter(*shown["x"].T, c=shown["label"], cmap="RdBu", s=6, edgecolors="k", linewidths=0.2)
        axis.set(title=f"{name}: {shown['scores'][name]:.0%}", xticks=[], yticks=[])
    figure.savefig(path)


if __name__ == "__main__":
    result = main()
    if sys.argv[1:]:
        picture(result, sys.argv[1])
