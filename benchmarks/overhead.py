"""What a custom gradient costs beside the operation itself: pullback against `tf.custom_gradient`.

Eager mode on 8 numbers, where nothing but overhead is measured; then one step of a small network in a
`tf.function` and under XLA, where both should cost nothing. `overhead_jax.py` and `overhead_torch.py` ask the
same of the other hosts, and are run from here too.
"""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from side_by_side import floors, judge

import pullback as pb

X = tf.constant([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])


def sine(x):
    def grad(dy):
        return dy * tf.cos(x)

    return tf.sin(x), grad


def product(x, y):
    def grad(dz):
        return dz * y, dz * x

    return x * y, grad


OPERATIONS = {
    "sine": (tf.sin, sine, [X]),
    "product": (operator.mul, product, [X, X + 1]),  # as the body writes it: tf.multiply is 10 µs faster
}


def forward(f, inputs):
    def run():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            f(*inputs)

    return run


def both(f, inputs):
    def run():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = f(*inputs)
        return tape.gradient(y, inputs)

    return run


def eager() -> list[tuple[str, float, float]]:
    results = []
    for name, (plain, body, inputs) in OPERATIONS.items():
        ways = {"plain": plain, "native": tf.custom_gradient(body), "pullback": pb.custom_gradient(body)}
        for stage, make in (("forward", forward), ("forward and backward", both)):
            t = floors({way: make(f, inputs) for way, f in ways.items()}, calls=100, rounds=60)
            print(
                f"eager {name}, {stage}: plain {t['plain']:.0f} µs, "
                f"tf.custom_gradient {t['native']:.0f} µs, pullback {t['pullback']:.0f} µs"
            )
            if stage == "forward":
                added = (t["pullback"] - t["plain"]) / (t["native"] - t["plain"])
                results.append((f"eager {name}: added forward time / native's", added, 0.30))
            else:
                bar = 1.10 if len(inputs) == 1 else 1.25
                total = t["pullback"] / t["plain"]
                results.append((f"eager {name}: forward + backward / the plain operation's", total, bar))
    return results


def network(activation, compiled):
    weights = [tf.Variable(tf.random.stateless_normal([256, 256], [k, 0]) / 16) for k in range(8)]
    x = tf.random.stateless_normal([64, 256], [9, 9])

    @tf.function(jit_compile=compiled)
    def step():
        with tf.GradientTape() as tape:
            y = x
            for w in weights:
                y = activation(y @ w)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, weights)

    return step


def graph() -> list[tuple[str, float, float]]:
    results = []
    for name, compiled in (("tf.function", False), ("XLA", True)):
        arms = {
            "native": network(tf.custom_gradient(sine), compiled),
            "pullback": network(pb.custom_gradient(sine), compiled),
        }
        t = floors(arms, calls=5, rounds=60)
        print(f"{name} step: tf.custom_gradient {t['native']:.0f} µs, pullback {t['pullback']:.0f} µs")
        results.append((f"{name}: step / native's", t["pullback"] / t["native"], 1.02))
    return results


def others() -> list[tuple[str, float, float]]:
    """Measure the other hosts, each in a process of its own: frameworks do not share threads well."""
    results = []
    for host in ("jax", "torch"):
        script = Path(__file__).with_name(f"overhead_{host}.py")
        missed = subprocess.run([sys.executable, str(script)], check=False).returncode
        results.append((f"{script.name}: bars missed", float(missed), 0.0))
    return results


if __name__ == "__main__":
    judge(eager() + graph() + others())
