"""How does the loss of a language model fit into memory?

With V words, the logits of N tokens are N·V numbers, and their gradient as many again: more than the rest
of a small model together. `pb.ops.linear_cross_entropy` never holds them all at once: value and gradient
are those of the ordinary loss, and a fraction of the memory is kept.
"""

import sys

import torch

import pullback as pb

TOKENS, WIDTH, WORDS = 256, 32, 8192


def ordinary(x, w, labels):
    return torch.nn.functional.cross_entropy(x @ w.T, labels)


def frugal(x, w, labels):
    return pb.ops.linear_cross_entropy(x, w, labels)


def kept(loss, *inputs):
    """Count the bytes that PyTorch keeps for the backward pass of a loss, beside its inputs."""
    own = {tensor.data_ptr() for tensor in inputs}
    seen = {}

    def pack(tensor):
        if tensor.data_ptr() not in own:
            seen[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss(*inputs)
    return sum(seen.values())


def train(loss, steps, seed=0):
    """Learn which word follows which: each has one successor."""
    generator = torch.Generator().manual_seed(seed)
    follows = torch.randperm(WORDS, generator=generator)[:64]
    table = (0.3 * torch.randn(64, WIDTH, generator=generator)).requires_grad_(True)
    w = (0.3 * torch.randn(WORDS, WIDTH, generator=generator)).requires_grad_(True)
    optimizer = torch.optim.Adam([table, w], lr=0.03)
    losses = []
    for _ in range(steps):
        word = torch.randint(0, 64, [TOKENS], generator=generator)
        optimizer.zero_grad()
        value = loss(table[word], w, follows[word])
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def main(steps=25):
    """Train with both losses; give what the picture shows."""
    torch.manual_seed(0)
    x, w = torch.randn(TOKENS, WIDTH, requires_grad=True), torch.randn(WORDS, WIDTH, requires_grad=True)
    labels = torch.randint(0, WORDS, [TOKENS])
    gradients = [torch.autograd.grad(loss(x, w, labels), [x, w]) for loss in (ordinary, frugal)]
    for one, other in zip(*gradients):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    losses = {loss.__name__: train(loss, steps) for loss in (ordinary, frugal)}
    sizes = {loss.__name__: kept(loss, x, w, labels) for loss in (ordinary, frugal)}
    last = {name: round(found[-1], 3) for name, found in losses.items()}
    print(f"last loss {last}; bytes kept for the gradient {sizes}")
    assert abs(last["ordinary"] - last["frugal"]) < 0.01
    assert losses["frugal"][-1] < losses["frugal"][0] / 2
    assert sizes["frugal"] < sizes["ordinary"] / 2
    return {"losses": losses, "sizes": sizes}


def picture(shown, path):
    """Draw both losses, and what each keeps."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", width_ratios=[1.5, 1])
    for name, style in (("ordinary", {"c": "0.7", "lw": 5}), ("frugal", {"c": "tab:green"})):
        axes[0].plot(shown["losses"][name], label=name, **style)
    axes[0].set(title="the same loss", xlabel="step")
    axes[0].legend(frameon=False)
    sizes = [shown["sizes"][name] / 1e6 for name in ("ordinary", "frugal")]
    axes[1].bar(["ordinary", "frugal"], sizes, color=["0.7", "tab:green"])
    axes[1].set(title="kept for the gradient", ylabel="megabytes")
    figure.savefig(path)


if __name__ == "__main__":
    result = main()
    if sys.argv[1:]:
        picture(result, sys.argv[1])
