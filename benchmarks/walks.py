"""The way of a call, counted: how many functions of pullback's one warm call of a rule and its gradient run.

Frames are counted by `sys.setprofile`, and how often the walk goes from one file to another. A count does
not depend on the machine, so each has a bar of its own.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch
from side_by_side import judge

import pullback as pb

HOUSE = str(Path(pb.__file__).parent)
BARS = {"NumPy": (15, 12), "TensorFlow eager": (22, 11), "PyTorch eager": (14, 14), "JAX jit(grad)": (75, 30)}


def log1pexp(xp):
    """Make the same rule for a framework."""

    @pb.custom_gradient
    def log1pexp(x):
        e = xp.exp(x)

        def grad(dy):
            return dy * (1 - 1 / (1 + e))

        return xp.log(1 + e), grad

    return log1pexp


def numpy_call() -> Callable[[], None]:
    rule, x = log1pexp(np), np.zeros(2)
    return lambda: rule(x)


def tensorflow_call() -> Callable[[], None]:
    rule, x = log1pexp(tf.math), tf.Variable(tf.zeros(2))

    def call() -> None:
        with tf.GradientTape() as tape:
            tape.watch(read := tf.convert_to_tensor(x))
            y = rule(read)
        tape.gradient(y, read)

    return call


def torch_call() -> Callable[[], None]:
    rule, x = log1pexp(torch), torch.zeros(2, requires_grad=True)
    return lambda: rule(x).sum().backward()


def jax_call() -> Callable[[], None]:
    rule, x = log1pexp(jnp), jnp.zeros(2)
    # a new function is traced anew; what pullback knows of the rule stays warm
    return lambda: jax.jit(jax.grad(lambda x: rule(x).sum()))(x)


CALLS = {
    "NumPy": numpy_call,
    "TensorFlow eager": tensorflow_call,
    "PyTorch eager": torch_call,
    "JAX jit(grad)": jax_call,
}


def walk(call: Callable[[], None]) -> list[str]:
    """List the frames of pullback's that a call runs, as `file: function`."""
    frames: list[str] = []

    def profile(frame, event, argument) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOUSE):
            name = frame.f_code.co_filename[len(HOUSE) + 1 :]
            frames.append(f"{name}: {frame.f_code.co_name}")

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return frames


def changes(frames: list[str]) -> int:
    """Count how often a walk goes to another file."""
    files = [frame.partition(":")[0] for frame in frames]
    return sum(a != b for a, b in itertools.pairwise(files))


def main() -> None:
    results = []
    for name, make in CALLS.items():
        call = make()
        for _ in range(3):
            call()
        frames = walk(call)
        if "-v" in sys.argv:
            print(name, *frames, sep="\n  ")
        most, moves = BARS[name]
        results.append((f"{name}: frames of one call and its gradient", len(frames), most))
        results.append((f"{name}: changes of file", changes(frames), moves))
    judge(results)


if __name__ == "__main__":
    main()
