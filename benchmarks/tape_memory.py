"""Memory of a body of 16 operations, each number measured in a fresh process.

What a tape keeps: the body keeps only its input for `grad`. `tf.custom_gradient` lets the tape record the
body, so all 16 intermediates stay; pullback records one operation. And the peak of the first call of a rule
against that of the second: nothing that a first call does may need memory of its own.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from peak_memory import grown
from side_by_side import judge

MIB = 64


def chain_of(framework):
    """Make a body of 16 operations in the functions of a framework; it keeps its input for `grad`."""

    def chain(x):
        y = x
        for _ in range(16):
            y = framework.sin(y)

        def grad(dy):
            return dy * framework.cos(x)

        return y, grad

    return chain


def measure(way: str) -> int:
    """Run in a process of its own: growth of resident memory while the tape is alive."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    import pullback as pb

    chain = chain_of(tf)
    rule = {"native": tf.custom_gradient, "pullback": pb.custom_gradient}[way](chain)

    def resident() -> int:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def forward(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rule(x)
        return tape, y

    forward(tf.ones([16]))  # import and set up whatever a first call does
    x = tf.ones([MIB * 2**18])
    unrecorded = chain(x)[0]  # the allocator keeps what the body needs while it runs: not the tape's doing
    before = resident()
    kept = forward(x)
    grown = resident() - before
    del kept, unrecorded
    return grown


def tensorflow_peak(call: int) -> int:
    """Run in a process of its own: how far one call of a rule, its first or its second, raises the peak."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    import pullback as pb

    chain = chain_of(tf)

    def step(rule, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rule(x)
        return tape.gradient(y, x)

    small = tf.ones([16])
    other = pb.custom_gradient(lambda x: (tf.sin(x), lambda dy: dy * tf.cos(x)))
    step(other, small)  # set up what any rule needs
    rule = pb.custom_gradient(chain)
    if call == 2:
        step(rule, small)
    x = tf.ones([MIB * 2**18])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step(rule, x)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def in_a_process(way: str) -> int:
    done = subprocess.run([sys.executable, __file__, way], capture_output=True, text=True, check=True)
    return int(done.stdout.strip().splitlines()[-1])


# ── PyTorch: the first call and the second ───────────────────────────────────────────────────────────────


def torch_peaks(kind: str) -> tuple[int, int]:
    """Run in a process of its own: the peaks of resident memory during two calls of a rule."""
    import torch

    import pullback as pb

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = torch.nn.Parameter(torch.tensor(1.0))

        @pb.custom_gradient
        def forward(self, x):
            y = x
            for _ in range(16):
                y = torch.sin(self.gain * y)

            def grad(dy, variables=None):
                return dy * torch.cos(x), [dy.sum() for _ in variables]

            return y, grad

    x = torch.ones(MIB * 2**18, requires_grad=True)
    other = torch.ones(16, requires_grad=True)
    pb.custom_gradient(lambda x: (torch.sin(2 * x), lambda dy: dy))(other).sum().backward()  # set up
    rule = pb.custom_gradient(chain_of(torch)) if kind == "alone" else Module()
    return grown(lambda: rule(x)), grown(lambda: rule(x))


def torch_in_a_process(kind: str) -> tuple[int, int]:
    """Measure in a fresh process."""
    command = [sys.executable, __file__, "torch", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second = map(int, done.stdout.split()[-2:])
    return first, second


def torch_results() -> list[tuple[str, float, float]]:
    """Compare the first call with the second, of a body alone and of one that captures a parameter."""
    results = []
    for kind in ("alone", "with a parameter"):
        first, second = torch_in_a_process(kind)
        print(f"PyTorch, a body {kind}: first call {first / 2**20:.0f} MiB, second {second / 2**20:.0f} MiB")
        results.append((f"PyTorch, {kind}: peak of the first call / second", first / second, 1.2))
    return results


if __name__ == "__main__":
    if sys.argv[1:2] == ["torch"]:
        print(*torch_peaks(sys.argv[2]))
    elif len(sys.argv) > 1 and sys.argv[1].startswith("tensorflow call "):
        print(tensorflow_peak(int(sys.argv[1].split()[-1])))
    elif len(sys.argv) > 1:
        print(measure(sys.argv[1]))
    else:
        native, ours = in_a_process("native"), in_a_process("pullback")
        print(f"kept for 16 operations on {MIB} MiB: tf.custom_gradient {native / 2**20:.0f} MiB, ", end="")
        print(f"pullback {ours / 2**20:.0f} MiB")
        first, second = in_a_process("tensorflow call 1"), in_a_process("tensorflow call 2")
        print(f"peak of a call, TensorFlow: the first {first / 2**20:.0f} MiB, ", end="")
        print(f"the second {second / 2**20:.0f} MiB")
        judge(
            [
                ("bytes kept by the tape / native's", ours / native, 0.15),
                ("TensorFlow: peak of the first call / the second's", first / second, 1.2),
                *torch_results(),
            ]
        )
