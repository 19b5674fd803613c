"""A chain of MLP blocks, gradients: `pb.ops.mlp` beside the plain block and a checkpoint around it.

Time: interleaved rounds in one process a framework, the floor of each arm. Memory: as `peak_memory.py`
measures it; one block is wide inside, so what is kept of it is most of what a plain chain needs. The
checkpoint is `pb.checkpoint`: that of JAX and of PyTorch is their own.

    python benchmarks/mlp.py [tensorflow|jax|torch] [rounds]
"""

from __future__ import annotations

import os
import sys

import numpy as np
from peak_memory import Arms
from side_by_side import floors, judge

SIZES = (2048, 256, 1024, 8)  # tokens, width, inside, blocks
SMALL = (16, 8, 16, 2)
WAYS = ("plain", "checkpoint", "ours")
# (framework, mode): memory / plain's, time / that of the checkpoint; 0 where that one keeps all. A checkpoint
# runs the last product again in TensorFlow's eager mode; a compiler drops it, and PyTorch's stops before it.
BARS = {
    ("tensorflow", "graph"): (0.35, 1.05),
    ("tensorflow", "xla"): (0.4, 1.05),
    ("tensorflow", "eager"): (0.3, 1.0),
    ("jax", "jit"): (0.25, 0.0),
    ("torch", "eager"): (0.35, 1.05),
}


def data(sizes):
    tokens, width, inside, blocks = sizes
    rng = np.random.default_rng(0)
    shapes = [(width, inside), (inside, width)]
    weights = [rng.normal(size=s).astype(np.float32) / s[0] ** 0.5 for _ in range(blocks) for s in shapes]
    return rng.normal(size=(tokens, width)).astype(np.float32), weights


def chain(plain, way):
    """Make the loss of a chain of blocks."""
    import pullback as pb

    block = {
        "plain": plain,
        "checkpoint": pb.checkpoint(plain),
        "ours": pb.ops.mlp,
    }[way]

    def loss(x, *weights):
        for up, down in zip(weights[::2], weights[1::2]):
            x = x + block(x, up, down)
        return (x * x).sum() if hasattr(x, "sum") else pb.namespace(x).sum(x * x)

    return loss


def tensorflow_step(mode, way, sizes):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    x, weights = data(sizes)
    xs = [tf.constant(a) for a in (x, *weights)]
    loss = chain(lambda x, up, down: tf.matmul(tf.nn.gelu(tf.matmul(x, up)), down), way)

    def step(*xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            value = loss(*xs)
        return tape.gradient(value, xs)

    if mode != "eager":
        step = tf.function(step, jit_compile=mode == "xla")
    return lambda: step(*xs)


def torch_step(mode, way, sizes):
    import torch

    x, weights = data(sizes)
    xs = [torch.tensor(a, requires_grad=True) for a in (x, *weights)]
    loss = chain(lambda x, up, down: torch.nn.functional.gelu(x @ up) @ down, way)
    return lambda: torch.autograd.grad(loss(*xs), xs)


def jax_program(way, sizes):
    import jax
    import jax.numpy as jnp

    x, weights = data(sizes)
    xs = [jnp.asarray(a) for a in (x, *weights)]
    loss = chain(lambda x, up, down: jax.nn.gelu(x @ up, approximate=False) @ down, way)
    return jax.jit(jax.grad(loss, tuple(range(len(xs))))).lower(*xs).compile(), xs


ARMS = Arms(tensorflow_step, torch_step, jax_program, SMALL, SIZES)


def compare(framework: str, mode: str, rounds: int) -> list[tuple[str, float, float]]:
    needed = {way: ARMS.memory(framework, mode, way) for way in WAYS}
    times = floors({way: ARMS.step(framework, mode, way, SIZES) for way in WAYS}, calls=1, rounds=rounds)
    for way in WAYS:
        print(
            f"{framework} {mode:<6} {way:<10} {times[way] / 1e3:8.0f} ms {needed[way]:8.1f} MiB", flush=True
        )
    of_memory, of_time = BARS[framework, mode]
    name = f"{framework} {mode}"
    results = [(f"{name}: memory / plain", needed["ours"] / needed["plain"], of_memory)]
    if of_time:
        results.append((f"{name}: time / checkpoint", times["ours"] / times["checkpoint"], of_time))
    return results


if __name__ == "__main__":
    ARMS.main()
    chosen = [arm for arm in BARS if arm[0] in sys.argv[1:]] or list(BARS)
    turns = next((int(word) for word in sys.argv[1:] if word.isdigit()), 5)
    judge([result for arm in chosen for result in compare(*arm, turns)])
