"""How is a ranking learned, when sorting has no gradient?

The rank of a score is a whole number: a step function of all scores. Its value is computed by sorting;
its gradient is that of a smooth rank, the sum of sigmoids of the differences. `pb.surrogate` puts the two
together, and the claim "the derivative of smooth_rank" is one that can be checked.
"""

import sys

import torch

import pullback as pb


def hard_rank(scores):
    """0 for the smallest, 1 for the largest."""
    order = torch.argsort(torch.argsort(scores))
    return order.to(scores.dtype) / (len(scores) - 1)


def smooth_rank(scores):
    apart = (scores[:, None] - scores[None, :]) / 0.3
    return (torch.sigmoid(apart).sum(1) - 0.5) / (len(scores) - 1)


rank = pb.example(torch.tensor([0.3, -1.2, 0.8, 2.0, -0.1]))(pb.surrogate(hard_rank, like=smooth_rank))


def agreement(a, b):
    """Spearman's correlation of two rankings."""
    a, b = a - a.mean(), b - b.mean()
    return float((a @ b) / (a.norm() * b.norm()))


def main(steps=120):
    """Learn a score from ranks alone; give what the picture shows."""
    torch.manual_seed(0)
    items = torch.randn(80, 6)
    secret = torch.tensor([1.5, -2.0, 0.7, 0.0, 0.4, -0.3])
    wanted = hard_rank(torch.exp(items @ secret))  # only the order is known, and not by how much
    weights = torch.zeros(6).add(0.1).requires_grad_(True)
    before = rank(items @ weights).detach()
    optimizer = torch.optim.Adam([weights], lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((rank(items @ weights) - wanted) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    after = rank(items @ weights).detach()
    said = f"agreement {agreement(before, wanted):.2f} → {agreement(after, wanted):.2f}"
    print(said)
    assert set((after * 79).round().int().tolist()) == set(range(80))  # the value is a true ranking
    assert agreement(after, wanted) > 0.97
    return {"wanted": wanted, "before": before, "after": after, "losses": losses}


def picture(shown, path):
    """Draw the rankings beside the wanted one, and the loss."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
    for axis, name in zip(axes, ("before", "after")):
        axis.plot([0, 1], [0, 1], c="0.8")
        axis.scatter(shown["wanted"], shown[name], s=9, c="tab:green")
        axis.set(title=name, xlabel="wanted rank", ylabel="rank")
    axes[2].semilogy(shown["losses"], c="tab:red")
    axes[2].set(title="loss", xlabel="step")
    figure.savefig(path)


if __name__ == "__main__":
    result = main()
    if sys.argv[1:]:
        picture(result, sys.argv[1])
