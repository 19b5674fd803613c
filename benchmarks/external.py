"""What wrapping a Python function costs in each framework, and what executors gain.

The overhead of a call is what it takes beyond the bare Python function, on eight floats, beside the
framework's own way to call Python. Then the memory of a call with 64 MiB, and a batch of slow calls on two
processes.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import resource
import subprocess
import sys
import time

import numpy as np

import pullback as pb

FRAMEWORKS = ("tensorflow", "jax", "torch")


def bare(x):
    return x * 2


double = pb.external(bare, output=lambda x: x)
double.pullback(lambda dy: dy * 2)


@pb.external(output=lambda x: x)
def slow(x):
    time.sleep(0.02)
    return x * 2


def overheads() -> list[tuple[str, float, float]]:
    """Measure a call in each framework, and the bare function."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import jax
    import jax.numpy as jnp
    import tensorflow as tf
    import torch
    from side_by_side import floors

    x = np.ones(8, np.float32)
    on_tensorflow, on_jax, on_torch = tf.constant(x), jnp.asarray(x), torch.tensor(x)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    arms = {
        "bare": lambda: bare(x),
        "numpy_function": lambda: tf.numpy_function(bare, [on_tensorflow], tf.float32),
        "tensorflow": lambda: double(on_tensorflow),
        "pure_callback": lambda: jax.pure_callback(bare, shape, on_jax).block_until_ready(),
        "jax": lambda: double(on_jax).block_until_ready(),
        "torch": lambda: double(on_torch),
        "numpy": lambda: double(x),
    }
    t = floors(arms, calls=200, rounds=30)
    over = {name: time - t["bare"] for name, time in t.items()}
    print("µs above the bare function: " + ", ".join(f"{n} {v:.1f}" for n, v in over.items() if n != "bare"))
    return [
        ("TensorFlow: µs above tf.numpy_function's own", over["tensorflow"] - over["numpy_function"], 40.0),
        ("JAX: overhead / pure_callback's", over["jax"] / over["pure_callback"], 1.0),
        ("PyTorch: µs above the function", over["torch"], 30.0),
    ]


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────

MEBIBYTE = 2**20


def peak(framework: str) -> float:
    """Give the MiB by which one call on 64 MiB raises the peak of this process."""
    total = pb.external(lambda x: x[:1] * 2, output=lambda x: x.replace(shape=(1,)))
    array = np.ones(64 * MEBIBYTE // 4, np.float32)
    if framework == "tensorflow":
        import tensorflow as tf

        make, small = tf.constant, tf.ones([8])
    elif framework == "jax":
        import jax.numpy as jnp

        make, small = lambda a: jnp.asarray(a).block_until_ready(), jnp.ones([8])
    else:
        import torch

        make, small = torch.tensor, torch.ones([8])
    total(small)
    tensor = make(array)
    del array
    np.ones(80 * MEBIBYTE, np.uint8)  # what was freed above is in use again
    before = _resident()
    highest = before
    import threading

    stop = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not stop.is_set():
            highest = max(highest, _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(5):
        total(tensor)
    stop.set()
    watcher.join()
    return max(highest - before, 0.0)


def _resident() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / MEBIBYTE


def memory() -> list[tuple[str, float, float]]:
    """Measure each framework in a process of its own."""
    results = []
    for framework in FRAMEWORKS:
        command = [sys.executable, __file__, "--peak", framework]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        results.append((f"{framework}: MiB that a call on 64 MiB adds", float(done.stdout.split()[-1]), 8.0))
    return results


# ── executors ────────────────────────────────────────────────────────────────────────────────────────────


def parallel() -> list[tuple[str, float, float]]:
    """Map a function of 20 ms over 64 elements, one after another and on two processes."""
    import jax
    import jax.numpy as jnp

    x = jnp.arange(64.0)
    pool = concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))
    spread = pb.external(slow.external.role("function"), output=lambda x: x, executor=pool)
    times = {}
    for name, f in (("sequential", slow), ("two processes", spread)):
        jax.vmap(f)(x[:4])  # starts the processes
        start = time.perf_counter()
        jax.vmap(f)(x).block_until_ready()
        times[name] = time.perf_counter() - start
    pool.shutdown()
    print(f"64 calls of 20 ms: {times['sequential']:.2f} s, on two processes {times['two processes']:.2f} s")
    return [
        (
            "two processes: time / sequential (1.8 times faster)",
            times["two processes"] / times["sequential"],
            1 / 1.8,
        )
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        print(peak(sys.argv[2]))
    else:
        from side_by_side import judge

        judge(overheads() + memory() + parallel())
