"""Attention, value and gradients, against the plain one of each framework and mode, and its own functions.

Time: interleaved rounds in one process a framework, the floor of each arm. Memory: as
`peak_memory.py` measures it. Error: of dk against float64.

    python benchmarks/attention.py [tensorflow|jax|torch] [rounds]
"""

from __future__ import annotations

import os
import sys

import numpy as np
from peak_memory import Arms
from side_by_side import floors, judge

SIZES = (4, 4096, 64)  # heads, length, depth
SMALL = (2, 16, 8)
MODES = {"tensorflow": ("graph", "xla", "eager"), "jax": ("jit",), "torch": ("eager",)}
WAYS = dict.fromkeys(MODES, ("plain", "ours", "native"))
# (framework, mode): memory / plain's, time / plain's; 0 where nothing is asked
BARS = {
    ("tensorflow", "graph"): (0.12, 1.05),
    ("tensorflow", "xla"): (0.2, 1.05),
    ("tensorflow", "eager"): (0.1, 0.0),
    ("jax", "jit"): (0.05, 0.7),
    ("torch", "eager"): (0.2, 1.05),
}


def data(sizes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(1, *sizes)).astype(np.float32) for _ in range(4)]  # q, k, v and a cotangent


def tensorflow_step(mode, way, sizes):
    """Make a function that takes one step: the gradients. The native function is that of Keras."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import tensorflow as tf

    import pullback as pb

    *xs, do = map(tf.constant, data(sizes))

    def plain(q, k, v):
        z = tf.matmul(q, k, transpose_b=True) * sizes[-1] ** -0.5
        return tf.matmul(tf.nn.softmax(z), v)

    def native(q, k, v):
        out = keras.ops.dot_product_attention(*(tf.transpose(x, (0, 2, 1, 3)) for x in (q, k, v)))
        return tf.transpose(out, (0, 2, 1, 3))

    attend = {"plain": plain, "ours": pb.ops.attention, "native": native}[way]

    def step(q, k, v):
        with tf.GradientTape() as tape:
            tape.watch([q, k, v])
            out = attend(q, k, v)
        return tape.gradient(out, [q, k, v], output_gradients=do)

    if mode != "eager":
        step = tf.function(step, jit_compile=mode == "xla")
    return lambda: step(*xs)


def torch_step(mode, way, sizes):
    """The native function is `scaled_dot_product_attention`, which ours is as well; `chunk` asks for ours."""
    import torch

    import pullback as pb

    *xs, do = map(torch.from_numpy, data(sizes))
    xs = [x.requires_grad_() for x in xs]
    attends = {
        "plain": lambda q, k, v: torch.softmax(q @ k.mT * sizes[-1] ** -0.5, -1) @ v,
        "ours": lambda q, k, v: pb.ops.attention(q, k, v, chunk=128),
        "native": torch.nn.functional.scaled_dot_product_attention,
    }
    return lambda: torch.autograd.grad(attends[way](*xs), xs, do)


def jax_program(way, sizes):
    import jax
    import jax.numpy as jnp

    import pullback as pb

    *xs, do = map(jnp.asarray, data(sizes))

    def plain(q, k, v):
        return jax.nn.softmax(q @ k.mT * sizes[-1] ** -0.5) @ v

    def native(q, k, v):
        return jax.nn.dot_product_attention(*(x.swapaxes(1, 2) for x in (q, k, v))).swapaxes(1, 2)

    attend = {"plain": plain, "ours": pb.ops.attention, "native": native}[way]

    def step(q, k, v, do):
        return jax.vjp(attend, q, k, v)[1](do)

    return jax.jit(step).lower(*xs, do).compile(), (*xs, do)


ARMS = Arms(tensorflow_step, torch_step, jax_program, SMALL, SIZES)


def exact_dk() -> np.ndarray:
    """Compute dk in float64, by NumPy, head by head."""
    q, k, v, do = (x[0].astype(float) for x in data(SIZES))
    found = []
    for qh, kh, vh, doh in zip(q, k, v, do):
        z = qh @ kh.T * SIZES[-1] ** -0.5
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        dp = doh @ vh.T
        found.append((p * (dp - (p * dp).sum(1, keepdims=True))).T @ qh * SIZES[-1] ** -0.5)
    return np.stack(found)[None]


def compare(framework: str, rounds: int) -> list[tuple[str, float, float]]:
    results, exact = [], exact_dk()
    for mode in MODES[framework]:
        arms = {way: ARMS.step(framework, mode, way, SIZES) for way in WAYS[framework]}
        errors = {}
        for way, arm in arms.items():
            dk = np.asarray(arm()[1])
            errors[way] = np.linalg.norm(dk - exact) / np.linalg.norm(exact)
        times = floors(arms, calls=1, rounds=rounds)
        del arms
        needed = {way: ARMS.memory(framework, mode, way) for way in WAYS[framework]}
        for way in WAYS[framework]:
            print(
                f"{framework} {mode:<6} {way:<7} {times[way] / 1e3:8.0f} ms {needed[way]:8.1f} MiB   "
                f"error of dk {errors[way]:.1e}"
            )
        of_memory, of_time = BARS[framework, mode]
        name = f"{framework} {mode}"
        results.append((f"{name}: memory / plain", needed["ours"] / needed["plain"], of_memory))
        if of_time:
            results.append((f"{name}: time / plain", times["ours"] / times["plain"], of_time))
    return results


def main() -> None:
    ARMS.main()
    chosen = [name for name in WAYS if name in sys.argv[1:]] or list(WAYS)
    rounds = next((int(word) for word in sys.argv[1:] if word.isdigit()), 5)
    judge([result for framework in chosen for result in compare(framework, rounds)])


if __name__ == "__main__":
    main()
