"""How do I differentiate through a program that reads and writes files?

Write its input as a `.npy` file, run it, read the `.npy` file it leaves behind. Nobody knows its derivative,
so differences are taken, by name, on two threads at a time. A run that fails is tried once more.
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import tensorflow as tf

import pullback as pb

# Stands for a simulator that somebody else wrote: where does a ball land that is thrown so fast, so steep?
PROGRAM = """
import math, struct, sys
speed, angle = struct.unpack("<2d", open(sys.argv[1], "rb").read()[-16:])
x, y, u, v, dt = 0.0, 0.0, speed * math.cos(angle), speed * math.sin(angle), 1e-2
while y >= 0 and x < 1e4:
    drag = 0.02 * math.hypot(u, v)
    u, v, last = u - dt * drag * u, v - dt * (9.81 + drag * v), (x, y)
    x, y = x + dt * u, y + dt * v
landed = last[0] + (x - last[0]) * last[1] / (last[1] - y)
header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (), }".ljust(117) + b"\\n"
open(sys.argv[2], "wb").write(b"\\x93NUMPY\\x01\\x00v\\x00" + header + struct.pack("<d", landed))
"""


@pb.external(
    output=lambda throw: throw.replace(shape=()),
    gradient="central",
    step=1e-3,
    executor=lambda: ThreadPoolExecutor(2),
    timeout=60,
    retries=1,
    cache=64,
    accuracy=1e-2,  # it takes steps in time, and lands between two of them
)
def distance(throw):
    """Run the program."""
    if not (0 < throw[0] < 100 and 0 < throw[1] < 1.5):
        raise ValueError("a throw forwards, at less than 100 m/s")
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "in.npy"), Path(folder, "out.npy")
        np.save(given, throw)
        subprocess.run([sys.executable, "-ISc", PROGRAM, given, made], check=True)
        return np.load(made)


def aimed(throw, target, steps=4):
    """Newton's method along the gradient, until the ball lands on the target."""
    for _ in range(steps):
        with tf.GradientTape() as tape:
            tape.watch(throw)
            landed = distance(throw)
        slope = tape.gradient(landed, throw)
        print(f"speed {throw[0]:.3f} m/s, angle {throw[1]:.3f}: {landed:.3f} m")
        throw -= slope * (landed - target) / tf.reduce_sum(slope**2)
    return throw


if __name__ == "__main__":
    throw = aimed(tf.constant([20.0, 0.3], tf.float64), target=20.0)
    print(f"lands at {distance(throw):.4f} m; {distance.cache}")
    assert abs(float(distance(throw)) - 20.0) < 1e-2
