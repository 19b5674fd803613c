"""How does a network of spikes learn a pattern in time?

A neuron fires when its voltage passes a threshold: a step, whose derivative is zero. `pb.heaviside` has
the step as its value and a smooth slope as its gradient, and says so; the rest is ordinary back-
propagation through time.
"""

import sys

import torch

import pullback as pb

STEPS, INPUTS, HIDDEN = 100, 20, 60


@pb.example(torch.tensor([-0.8, -0.1, 0.2, 1.5]))
def spike(v):
    return pb.heaviside(v, slope="fast_sigmoid", sharpness=5.0)


def run(inputs, into, out):
    """Let leaky neurons integrate and fire; give their spikes, and the trace that is read out."""
    voltage, trace = torch.zeros(HIDDEN), torch.zeros(())
    spikes, traces = [], []
    for x in inputs:
        voltage = 0.9 * voltage + into @ x
        fired = spike(voltage - 1.0)
        voltage = voltage * (1 - fired.detach())  # a neuron that fired starts again
        trace = 0.8 * trace + out @ fired
        spikes.append(fired)
        traces.append(trace)
    return torch.stack(spikes), torch.stack(traces)


def main(rounds=50):
    """Train the trace to be two waves; give what the picture shows."""
    torch.manual_seed(0)
    inputs = (torch.rand(STEPS, INPUTS) < 0.15).float()
    time = torch.linspace(0, 1, STEPS)
    target = torch.sin(4 * torch.pi * time) + 0.5 * torch.sin(10 * torch.pi * time)
    into = (0.35 * torch.randn(HIDDEN, INPUTS)).requires_grad_(True)
    out = (0.1 * torch.randn(HIDDEN)).requires_grad_(True)
    optimizer = torch.optim.Adam([into, out], lr=0.03)
    losses = []
    for _ in range(rounds):
        optimizer.zero_grad()
        spikes, trace = run(inputs, into, out)
        loss = ((trace - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(
        f"error {losses[0]:.3f} → {losses[-1]:.3f}, {spikes.detach().mean():.1%} of the neurons fire at once"
    )
    assert set(spikes.unique().tolist()) == {0.0, 1.0}
    assert losses[-1] < losses[0] / 4
    return {"spikes": spikes.detach(), "trace": trace.detach(), "target": target, "losses": losses}


def picture(shown, path):
    """Draw the spikes, the trace and the error."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
    when, who = shown["spikes"].nonzero().T
    axes[0].scatter(when, who, s=2, c="k")
    axes[0].set(title="spikes", xlabel="time", ylabel="neuron")
    axes[1].plot(shown["target"], label="wanted", c="0.6", lw=3)
    axes[1].plot(shown["trace"], label="read out", c="tab:green")
    axes[1].set(title="trace", xlabel="time")
    axes[1].legend(frameon=False)
    axes[2].semilogy(shown["losses"], c="tab:red")
    axes[2].set(title="error", xlabel="round")
    figure.savefig(path)


if __name__ == "__main__":
    result = main()
    if sys.argv[1:]:
        picture(result, sys.argv[1])
