"""How does the loss of a language model fit into memory?

The logits of N tokens are N·V numbers, and so is their gradient: more than the rest of a small model.
Given a file, 131,072 words are learned on three frameworks by both losses, each in a process of its own.
"""

import json
import os
import resource
import subprocess
import sys

import numpy as np

import pullback as pb

WORDS, TOKENS, WIDTH, INSIDE, STEPS, RATE = 131_072, 512, 64, 256, 20, 1.0


def of_tensorflow():
    import tensorflow as tf

    def pull(f, parameters):
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            value = f(*parameters)
        return value, map(tf.convert_to_tensor, tape.gradient(value, parameters))

    def ordinary(x, w, label):
        z = tf.matmul(x, w, transpose_b=True)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, z))

    return tf.constant, tf.function, pull, ordinary


def of_jax():
    import jax

    def ordinary(x, w, label):
        z = x @ w.T
        return (jax.nn.logsumexp(z, axis=1) - z[jax.numpy.arange(TOKENS), label]).mean()

    return jax.numpy.asarray, jax.jit, lambda f, xs: jax.value_and_grad(f, (0, 1, 2, 3))(*xs), ordinary


def of_pytorch():
    import torch

    def pull(f, parameters):
        parameters = [p.detach().requires_grad_() for p in parameters]
        value = f(*parameters)
        return value.detach(), torch.autograd.grad(value, parameters)

    loss = torch.nn.functional.cross_entropy
    return torch.tensor, lambda step: step, pull, lambda x, w, label: loss(x @ w.T, label)


FRAMEWORKS = {"TensorFlow": of_tensorflow, "JAX": of_jax, "PyTorch": of_pytorch}


def train(framework, loss, words=4096, steps=6):
    """Learn which word follows which, of 64 that occur; give the losses, and by how many MB the peak grew."""
    tensor, compiled, pull, ordinary = FRAMEWORKS[framework]()
    chosen = ordinary if loss == "ordinary" else pb.ops.linear_cross_entropy

    def step(parameters, word, label):
        def model(table, up, down, w):
            x = pb.namespace(table).take(table, word, axis=0)
            return chosen(x + pb.ops.mlp(x, up, down), w, label)

        value, slopes = pull(model, parameters)
        return value, [p - RATE * slope for p, slope in zip(parameters, slopes)]

    step, rng = compiled(step), np.random.default_rng(0)
    seen, follows = rng.permutation(words)[:128].reshape(2, 64)
    shapes = (words, WIDTH), (WIDTH, INSIDE), (INSIDE, WIDTH), (words, WIDTH)
    parameters = [tensor(rng.normal(size=shape).astype(np.float32) * 0.2) for shape in shapes]
    losses, before = [], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for token in rng.integers(0, 64, (steps, TOKENS)):
        value, parameters = step(parameters, tensor(seen[token]), tensor(follows[token]))
        losses.append(float(value))
    return losses, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 1e6


def alone(*arm):
    given = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "262144"}  # what is freed goes back
    return json.loads(subprocess.check_output([sys.executable, __file__, *arm], env=given))


def main(run=train, frameworks=("PyTorch",)):
    """Train by both losses; give what the picture shows."""
    shown = {name: [run(name, loss) for loss in ("ordinary", "frugal")] for name in frameworks}
    for name, ((one, much), (other, little)) in shown.items():
        apart = max(abs(a - b) for a, b in zip(one, other))
        print(f"{name}: losses {apart:.1e} apart, the last {other[-1]:.3f}; {much:.0f} and {little:.0f} MB")
        assert apart < 1e-4, "the same curve"
        assert other[-1] < other[0] / 2
    return shown


def picture(shown, path):
    """Draw the losses of all, and the peak of each."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", width_ratios=[1.5, 1])
    for i, ((ordinary, much), (frugal, little)) in enumerate(shown.values()):
        left.plot(ordinary, c="0.8", lw=9)
        left.plot(frugal, lw=7 - 3 * i, zorder=3 + i, label=list(shown)[i])
        right.bar([i, i + 0.4], [much, little], 0.4, color=["0.7", "tab:green"])
    left.legend(title="the same loss, step by step; grey: the ordinary one", frameon=False)
    right.set(title="MB in training; grey: ordinary", xticks=[0.2, 1.2, 2.2], xticklabels=list(shown))
    figure.savefig(path)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(train(*sys.argv[1:], WORDS, STEPS)))
    else:
        picture(main(alone, FRAMEWORKS), sys.argv[1]) if sys.argv[1:] else main()
