"""What in a picture made the network decide?

The gradient of a decision with respect to the picture is noisy: it goes through every unit that was on.
Guided back-propagation lets only what speaks *for* the decision pass a ReLU. `pb.override` gives the
trained network back with that gradient in all of its ReLUs; nothing of it is changed, and nothing is
trained again.
"""

import sys

import torch

import pullback as pb

SIZE = 20


def guided(dy, x):
    """Pass what is positive, of units that were on."""
    return torch.where((x > 0) & (dy > 0), dy, 0.0)


def shapes(count, generator):
    """Rings and crosses in noise, somewhere in the picture."""
    label = torch.randint(0, 2, [count], generator=generator)
    at = torch.randint(6, SIZE - 6, [count, 2], generator=generator)
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    y, x = y - at[:, :1, None], x - at[:, 1:, None]
    ring = (torch.hypot(x.float(), y.float()) - 4).abs() < 0.8
    cross = ((x == 0) & (y.abs() < 5)) | ((y == 0) & (x.abs() < 5))
    drawn = torch.where(label[:, None, None] == 1, ring, cross).float()
    return (drawn + 0.3 * torch.randn(drawn.shape, generator=generator))[:, None], label, drawn


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5, padding=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 8, 5, padding=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 2),
    )


def saliency(net, picture, label):
    """Give the gradient of the decision with respect to the picture."""
    picture = picture.clone().requires_grad_(True)
    score = net(picture)
    (score[0, label] - score[0, 1 - label]).backward()
    return picture.grad[0, 0]


def on_the_shape(found, drawn):
    """Give the share of a saliency that lies on the shape, and not beside it."""
    weight = found.clamp(min=0)
    return float(weight[drawn > 0].sum() / weight.sum())


def main(steps=120):
    """Train, look twice; give what the picture shows."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        x, label, _ = shapes(32, generator)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), label).backward()
        optimizer.step()
    x, label, drawn = shapes(100, generator)
    accuracy = float((net(x).argmax(1) == label).float().mean())
    clear = pb.override(net, {torch.nn.ReLU: guided})
    assert torch.equal(clear(x), net(x))  # the same network, with other gradients
    plain = [saliency(net, x[i : i + 1], label[i]) for i in range(20)]
    better = [saliency(clear, x[i : i + 1], label[i]) for i in range(20)]
    shares = [sum(on_the_shape(g, d) for g, d in zip(found, drawn)) / 20 for found in (plain, better)]
    print(f"{accuracy:.0%} right; on the shape: {shares[0]:.0%} of the gradient, {shares[1]:.0%} guided")
    assert accuracy > 0.9
    assert shares[1] > shares[0] + 0.03
    one = next(i for i in range(20) if label[i] == 1)
    return {"picture": x[one, 0], "gradient": plain[one], "guided": better[one]}


def picture(shown, path):
    """Draw the picture and both gradients."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    for axis, (title, image) in zip(axes, shown.items()):
        axis.imshow(image.clamp(min=0), cmap="gray" if title == "picture" else "magma")
        axis.set(title=title, xticks=[], yticks=[])
    figure.savefig(path)


if __name__ == "__main__":
    result = main()
    if sys.argv[1:]:
        picture(result, sys.argv[1])
