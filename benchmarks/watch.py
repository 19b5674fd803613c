"""What a log costs a training step that samples every tenth step, beside the same step without one.

A small transformer block and an optimiser, with four places and all weights looked at where a host can: eager
TensorFlow and PyTorch, `tf.function`, XLA, `jax.jit`, `torch.compile`. A round is ten steps, one of them
sampled; rounds are interleaved, and the arms are built anew several times. `outside` is the step with its
places outside of any log.

JAX starts a program from Python, and not from C++, if it has any effect. So the step is timed with one
callback that does nothing, too: what that costs is JAX's own, and a log of `jax.jit` is judged beside it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from side_by_side import floors, judge

import pullback as pb

WIDTH, LAYERS, TOKENS, EVERY, STEPS = 256, 4, 1024, 10, 10
BUILDS, ROUNDS = 9, 8
BAR = 1.03
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(TOKENS, WIDTH)).astype(np.float32)
WEIGHTS = [(RANDOM.normal(size=(WIDTH, WIDTH)) / 16).astype(np.float32) for _ in range(2 * LAYERS)]


def keep(x, name):
    return x


def call_back(x, name):
    return x


def tensorflow_step(watch, how):
    import tensorflow as tf

    weights = [tf.Variable(w) for w in WEIGHTS]
    x = tf.constant(X)

    def step():
        with tf.GradientTape() as tape:
            y = x
            for i in range(LAYERS):
                y = watch(y + tf.tanh(y @ weights[2 * i]) @ weights[2 * i + 1], f"layer {i}")
            loss = tf.reduce_mean(y * y)
        for w, g in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(1e-3 * g)
        return loss

    return {"eager": step, "graph": tf.function(step), "XLA": tf.function(step, jit_compile=True)}[how]


def jax_step(watch, how):
    import jax
    import jax.numpy as jnp

    state = [[jnp.asarray(w) for w in WEIGHTS]]
    x = jnp.asarray(X)

    def loss(weights):
        y = x
        for i in range(LAYERS):
            y = watch(y + jnp.tanh(y @ weights[2 * i]) @ weights[2 * i + 1], f"layer {i}")
        return jnp.mean(y * y)

    @jax.jit
    def update(weights):
        if watch is call_back:
            jax.debug.callback(lambda: None)
        value, grads = jax.value_and_grad(loss)(weights)
        return value, [w - 1e-3 * g for w, g in zip(weights, grads)]

    def step():
        value, state[0] = update(state[0])
        return jax.block_until_ready(value)

    return step


def torch_step(watch, how):
    import torch

    class Layer(torch.nn.Module):
        def __init__(self, i):
            super().__init__()
            self.name = f"layer {i}"
            self.up = torch.nn.Parameter(torch.tensor(WEIGHTS[2 * i]))
            self.down = torch.nn.Parameter(torch.tensor(WEIGHTS[2 * i + 1]))

        def forward(self, y):
            return watch(y + torch.tanh(y @ self.up) @ self.down, self.name)

    model = torch.nn.Sequential(*(Layer(i) for i in range(LAYERS)))
    x = torch.tensor(X)
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    run = torch.compile(model) if how == "compiled" else model

    def step():
        optimiser.zero_grad()
        loss = run(x).square().mean()
        loss.backward()
        optimiser.step()

    step.model = model
    return step


HOSTS = {
    "TensorFlow eager": (tensorflow_step, "eager"),
    "tf.function": (tensorflow_step, "graph"),
    "tf.function XLA": (tensorflow_step, "XLA"),
    "jax.jit": (jax_step, ""),
    "PyTorch eager": (torch_step, "eager"),
    "torch.compile": (torch_step, "compiled"),
}


def arms_of(name, placed_first) -> dict[str, Callable[[], None]]:
    """Build the step anew, with its places and without: what is built first differs from time to time."""
    make, how = HOSTS[name]
    if how == "compiled":
        import torch

        torch.compiler.reset()  # else the eighth build of the same code is not compiled
    watches = (pb.watch, keep) if placed_first else (keep, pb.watch)
    made = {watch: make(watch, how) for watch in watches}
    plain, placed = made[keep], made[pb.watch]

    def rounds(step):
        for _ in range(STEPS):
            step()

    def logged():
        with pb.watch(every=EVERY):
            rounds(placed)

    def modelled():
        with pb.watch(plain.model, every=EVERY):
            rounds(plain)

    arms = {"plain": lambda: rounds(plain), "outside": lambda: rounds(placed), "logged": logged}
    if how == "eager" and make is torch_step:
        arms["model"] = modelled
    if make is jax_step:
        empty = make(call_back, how)
        arms["callback"] = lambda: rounds(empty)
    return arms


def measure(name) -> list[tuple[str, float, float]]:
    """Compare in several builds, and take the median of their ratios.

    Two builds of the very same program differ by up to 7 % here, by where their arrays happen to lie.
    """
    found = [floors(arms_of(name, build % 2), calls=1, rounds=ROUNDS) for build in range(BUILDS)]
    step = {arm: np.median([t[arm] for t in found]) / STEPS for arm in found[0]}
    print(f"{name}: " + ", ".join(f"{arm} {µs:.0f} µs" for arm, µs in step.items()), flush=True)
    ratio = {arm: float(np.median([t[arm] / t["plain"] for t in found])) for arm in found[0]}
    results = [(f"{name}: places outside of a log", ratio["outside"], BAR)]
    least = 1.0
    if "callback" in ratio:
        least = max(ratio["callback"], 1.0)
        print(
            f"{name}: a callback that does nothing {least:.3f}, a log {ratio['logged']:.3f} of the plain step"
        )
    results.append((f"{name}: a log, every {EVERY} steps", ratio["logged"] / least, BAR))
    if "model" in ratio:
        results.append((f"{name}: a log of the model", ratio["model"], BAR))
    return results


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(HOSTS)
    judge([result for name in chosen for result in measure(name)])
