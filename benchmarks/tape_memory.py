"""Bytes that a tape keeps for a body of 16 operations, each measured in a fresh process.

The body keeps only its input for `grad`. `tf.custom_gradient` lets the tape record the body, so all 16
intermediates stay; pullback records one operation.
"""

from __future__ import annotations

import os
import subprocess
import sys

from side_by_side import judge

MIB = 64


def measure(way: str) -> int:
    """Run in a process of its own: growth of resident memory while the tape is alive."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    import pullback as pb

    def chain(x):
        y = x
        for _ in range(16):
            y = tf.sin(y)

        def grad(dy):
            return dy * tf.cos(x)

        return y, grad

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


def in_a_process(way: str) -> int:
    done = subprocess.run([sys.executable, __file__, way], capture_output=True, text=True, check=True)
    return int(done.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(measure(sys.argv[1]))
    else:
        native, ours = in_a_process("native"), in_a_process("pullback")
        print(f"kept for 16 operations on {MIB} MiB: tf.custom_gradient {native / 2**20:.0f} MiB, ", end="")
        print(f"pullback {ours / 2**20:.0f} MiB")
        judge([("bytes kept by the tape / native's", ours / native, 0.15)])
