"""How does a classifier learn for data that nobody has labelled?

The labelled points and the unlabelled ones are turned against each other. A second head tries to tell the
two domains apart, and `pb.reverse_gradient` lets the features learn to make that impossible: forward the
identity, backward the negative. It is the whole of domain-adversarial training. Its strength grows from 0, as
the heads have to learn first; and where a single training ends is chance, so that four of them vote.
"""

import itertools
import sys

import numpy as np
import torch

import pullback as pb

TURN = np.deg2rad(30)


@pb.example(torch.tensor([[0.5, -1.0], [2.0, 0.3]]), 0.7)
def confuse(features, strength):
    return pb.reverse_gradient(features, strength)


def moons(rng, turn, count=300):
    """Two half circles, turned about the origin."""
    angle, label = rng.uniform(0, np.pi, count), rng.integers(0, 2, count)
    x = np.where(label, 1 - np.cos(angle), np.cos(angle)) - 0.5
    y = np.where(label, 0.5 - np.sin(angle), np.sin(angle)) - 0.25
    points = np.stack([x, y], 1) + 0.08 * rng.normal(size=(count, 2))
    turned = points @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return torch.tensor(turned, dtype=torch.float32), torch.tensor(label, dtype=torch.float32)


def layers(*sizes):
    parts = [(torch.nn.Linear(a, b), torch.nn.ReLU()) for a, b in itertools.pairwise(sizes)]
    return torch.nn.Sequential(*[part for pair in parts for part in pair][:-1])


def train(source, label, target, *, adapt, steps, start):
    """Train features and the classifier; with `adapt`, against the domain head."""
    torch.manual_seed(start)
    features, classify, tell = layers(2, 32, 32), layers(32, 1), layers(32, 32, 1)
    parameters = [p for net in (features, classify, tell) for p in net.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.005, betas=(0.5, 0.999))
    cross = torch.nn.functional.binary_cross_entropy_with_logits
    domain = torch.cat([torch.zeros(len(source)), torch.ones(len(target))])
    for step in range(steps):
        optimizer.zero_grad()
        loss = cross(classify(features(source))[:, 0], label)
        if adapt:
            confused = confuse(features(torch.cat([source, target])), np.tanh(5 * step / steps))
            loss = loss + cross(tell(confused)[:, 0], domain)
        loss.backward()
        optimizer.step()
    return lambda x: classify(features(x))[:, 0].detach()


def vote(*data, adapt, steps):
    """Train from four starts; give the mean of what they say."""
    nets = [train(*data, adapt=adapt, steps=steps, start=start) for start in range(4)]
    return lambda x: sum(net(x) for net in nets) / len(nets)


def main(steps=300):
    """Train without and with the unlabelled points; give what the picture shows."""
    rng = np.random.default_rng(0)
    source, label = moons(rng, 0.0)
    target, hidden = moons(rng, TURN)
    nets = {adapt: vote(source, label, target, adapt=adapt, steps=steps) for adapt in (False, True)}
    score = {adapt: float(((net(target) > 0) == (hidden > 0)).float().mean()) for adapt, net in nets.items()}
    print(f"on the unlabelled points: {score[False]:.0%} without, {score[True]:.0%} with adaptation")
    assert score[True] > score[False] + 0.08
    return {"nets": nets, "score": score, "target": target, "hidden": hidden}


def picture(shown, path):
    """Draw both classifiers over the unlabelled points."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    a, b = np.meshgrid(np.linspace(-2.2, 2.2, 150), np.linspace(-2, 2, 150))
    grid = torch.tensor(np.stack([a.ravel(), b.ravel()], 1), dtype=torch.float32)
    for axis, adapt in zip(axes, (False, True)):
        axis.contourf(
            a, b, torch.sigmoid(shown["nets"][adapt](grid)).reshape(a.shape), levels=12, cmap="RdBu"
        )
        axis.scatter(*shown["target"].T, c=shown["hidden"], cmap="RdBu", s=8, edgecolors="k", linewidths=0.3)
        title = "with" if adapt else "without"
        axis.set(title=f"{title} adaptation: {shown['score'][adapt]:.0%}", xticks=[], yticks=[])
    figure.savefig(path)


if __name__ == "__main__":
    result = main()
    if sys.argv[1:]:
        picture(result, sys.argv[1])
