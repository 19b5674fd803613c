"""Linear + cross-entropy, value and gradients, against the plain loss of each framework in each mode.

Time: interleaved rounds in one process a framework, the floor of each arm. Memory: as
`peak_memory.py` measures it. Error: of dw against float64. Beside them stands the floor: the three products
that no loss can do without, with nothing between them.

    python benchmarks/linear_cross_entropy.py [tensorflow|jax|torch] [rounds]
"""

from __future__ import annotations

import os
import sys

import numpy as np
from peak_memory import Arms
from side_by_side import floors, judge

N, D, V = 2048, 256, 32768
SMALL = 64, 32, 256

MODES = {"tensorflow": ("graph", "xla", "eager"), "jax": ("jit",), "torch": ("eager",)}
WAYS = {"torch": ("plain", "ours", "core")}
# (framework, mode): memory / plain's, time / plain's; 0 where nothing is asked
BARS = {
    ("tensorflow", "graph"): (0.45, 1.05),
    ("tensorflow", "xla"): (0.30, 1.05),
    ("tensorflow", "eager"): (0.25, 0.0),
    ("jax", "jit"): (0.06, 1.0),
    ("torch", "eager"): (0.2, 0.8),
}


def data(shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, d, v = shape
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)).astype(np.float32)
    w = (rng.normal(size=(v, d)) / d**0.5).astype(np.float32)
    return x, w, rng.integers(0, v, n).astype(np.int32)


def tensorflow_step(mode: str, way: str, shape: tuple[int, int, int]):
    """Make a function that takes one step: the loss and its gradients."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    import pullback as pb

    x, w, labels = map(tf.constant, data(shape))

    def plain(x, w):
        z = tf.matmul(x, w, transpose_b=True)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, z))

    def ours(x, w):
        return pb.ops.linear_cross_entropy(x, w, labels)

    def products(x, w):
        z = tf.matmul(x, w, transpose_b=True)
        return tf.matmul(z, w), tf.matmul(z, x, transpose_a=True)

    def step(x, w):
        if way == "products":
            return products(x, w)
        loss = {"plain": plain, "ours": ours}[way]
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            value = loss(x, w)
        return value, *tape.gradient(value, [x, w])

    if mode != "eager":
        step = tf.function(step, jit_compile=mode == "xla")
    return lambda: step(x, w)


def torch_step(mode: str, way: str, shape: tuple[int, int, int]):
    import torch

    import pullback as pb

    x, w, labels = map(torch.from_numpy, data(shape))
    labels = labels.long()
    x.requires_grad_()
    w.requires_grad_()

    def core():
        return torch.nn.functional.linear_cross_entropy(
            x, w, labels, options=torch.nn.LinearCrossEntropyOptions()
        )

    def products():
        z = x @ w.T
        return z @ w, z.T @ x

    if way == "products":
        return torch.no_grad()(products)
    losses = {
        "plain": lambda: torch.nn.functional.cross_entropy(x @ w.T, labels),
        "ours": lambda: pb.ops.linear_cross_entropy(x, w, labels),
        "core": core,
    }
    return lambda: torch.autograd.grad(losses[way](), [x, w])


def jax_program(way: str, shape: tuple[int, int, int]):
    import jax
    import jax.numpy as jnp

    import pullback as pb

    x, w, labels = map(jnp.asarray, data(shape))

    def plain(x, w, labels):
        z = x @ w.T
        return jnp.mean(jax.nn.logsumexp(z, axis=1) - jnp.take_along_axis(z, labels[:, None], 1)[:, 0])

    def products(x, w, labels):
        z = x @ w.T
        return z @ w, z.T @ x

    losses = {"plain": plain, "ours": pb.ops.linear_cross_entropy}
    step = products if way == "products" else jax.value_and_grad(losses[way], (0, 1))
    return jax.jit(step).lower(x, w, labels).compile(), (x, w, labels)


ARMS = Arms(tensorflow_step, torch_step, jax_program, SMALL, (N, D, V))


def _last(result) -> np.ndarray:
    while isinstance(result, tuple):
        result = result[-1]
    return np.asarray(result)


def error_of(dw: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(dw - exact) / np.linalg.norm(exact))


def exact_dw() -> np.ndarray:
    """Compute dw in float64, by NumPy."""
    x, w, labels = data((N, D, V))
    dw = np.zeros((V, D))
    for rows in np.array_split(np.arange(N), 8):
        z = x[rows].astype(float) @ w.T.astype(float)
        z -= z.max(1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(1, keepdims=True)
        z[np.arange(len(rows)), labels[rows]] -= 1
        dw += z.T @ x[rows].astype(float)
    return dw / N


def compare(framework: str, rounds: int) -> list[tuple[str, float, float]]:
    results = []
    exact = exact_dw()
    for mode in MODES[framework]:
        ways = WAYS.get(framework, ("plain", "ours"))
        arms = {way: ARMS.step(framework, mode, way, (N, D, V)) for way in ways}
        errors = {way: error_of(_last(arm()), exact) for way, arm in arms.items()}
        arms["products"] = ARMS.step(framework, mode, "products", (N, D, V))
        times = floors(arms, calls=1, rounds=rounds)
        del arms
        floor = times["products"]
        print(f"{framework} {mode:<6} products {floor / 1e3:.0f} ms: {floor / times['plain']:.3f} of plain")
        needed = {way: ARMS.memory(framework, mode, way) for way in ways}
        for way in ways:
            print(
                f"{framework} {mode:<6} {way:<6} {times[way] / 1e3:8.0f} ms {needed[way]:8.1f} MiB   "
                f"error of dw {errors[way]:.1e}"
            )
        of_memory, of_time = BARS[framework, mode]
        name = f"{framework} {mode}"
        results.append((f"{name}: memory / plain", needed["ours"] / needed["plain"], of_memory))
        if of_time:
            results.append((f"{name}: time / plain", times["ours"] / times["plain"], of_time))
        if "core" in ways:
            results.append((f"{name}: time / F.linear_cross_entropy", times["ours"] / times["core"], 0.4))
        results.append((f"{name}: error / plain", errors["ours"] / errors["plain"], 1.5))
    return results


if __name__ == "__main__":
    ARMS.main()
    wanted = [sys.argv[1]] if len(sys.argv) > 1 else list(MODES)
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    judge([result for framework in wanted for result in compare(framework, turns)])
