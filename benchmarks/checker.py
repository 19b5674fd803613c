"""What it costs to check a gradient: evaluations, which must not grow with the size, and time.

Against `tf.test.compute_gradient` and `torch.autograd.gradcheck` in slow mode, on the same elementwise rule
in float64. Those build whole Jacobians; the derivative probe asks for a few directions.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import torch
from side_by_side import judge

import pullback as pb
import pullback.checker


@pb.custom_gradient
def rule(x):
    y = tf.tanh(x)

    def grad(dy):
        return dy * (y + x * (1 - y * y))

    return y * x, grad


@pb.custom_gradient
def total(x):
    return tf.reduce_sum(x * x), lambda dy: 2 * dy * x


class TorchRule(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tanh(x) * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        y = torch.tanh(x)
        return dy * (y + x * (1 - y * y))


def derivative(f, x):
    report = pb.check(f, x, probes=["derivative"], own_points=False, seed=1)
    assert report.verdict == "right", report
    return report


def seconds(run) -> float:
    run()  # the first run traces and fills caches
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def evaluations() -> list[tuple[str, float, float]]:
    results = []
    for name, f in (("n to n", rule), ("n to 1", total)):
        most = [0, 0]
        for n in (10**2, 10**3, 10**4, 10**5, 10**6):
            report = derivative(f, tf.constant(np.random.default_rng(n).normal(size=n)))
            print(f"{name}, n = {n:>7}: {report.forwards} forwards, {report.pullbacks} pullbacks")
            most = [max(most[0], report.forwards), max(most[1], report.pullbacks)]
        results.append((f"{name}: forwards / 60, n up to 10⁶", most[0] / 60, 1.0))
        results.append((f"{name}: pullbacks / 12, n up to 10⁶", most[1] / 12, 1.0))
    return results


def times() -> list[tuple[str, float, float]]:
    values = np.random.default_rng(1).normal(size=2048)
    x = tf.constant(values)
    ours = seconds(lambda: derivative(rule, x))
    native = seconds(lambda: tf.test.compute_gradient(rule, [x]))
    leaf = torch.tensor(values, requires_grad=True)
    slow = seconds(lambda: torch.autograd.gradcheck(TorchRule.apply, (leaf,), fast_mode=False))
    print(f"n = 2048: pullback {ours:.3f} s, tf.test.compute_gradient {native:.2f} s, gradcheck {slow:.2f} s")
    return [
        ("time / tf.test.compute_gradient's, n = 2048", ours / native, 1 / 50),
        ("time / torch gradcheck's (slow mode), n = 2048", ours / slow, 1.0),
    ]


def whole_check() -> None:
    x = tf.constant(np.random.default_rng(1).normal(size=64))
    pb.check(rule, x, seed=1)
    start = time.perf_counter()
    pb.check(rule, x, seed=2)
    print(f"a whole check of a small rule, every probe: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    whole_check()
    judge(evaluations() + times())
