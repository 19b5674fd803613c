"""Activations and norms that keep only their input, beside the frameworks' own: bytes kept, and time.

Kept bytes: what an eager tape of TensorFlow, or PyTorch's graph, holds after the forward pass beyond the
inputs; the bar is zero, and for PyTorch's own norms their statistics. Time: one step forward and back on
1024 × 1024 numbers, in eager TensorFlow, under XLA, under `jax.jit` and in eager PyTorch; the bar is the
built-in's own time. Where the memory of a process comes to lie is chance, and costs an arm up to half of its
time again, for the life of the process: each framework is measured in several, and the fastest round of all
counts. The built-in is timed twice in each: what its two floors differ by, the machine cannot tell apart, and
it is added to the bar, up to five percent; more than that is no quiet machine. `--cpu` counts the time of the
processor there, on one thread. Where PyTorch's own keeps a tensor more, or gives less, a Function written by
hand around its kernels, which keeps and gives what the rule does, is timed beside it: no rule in Python can
be faster, so where it is slower than the built-in its time is the bar. So it is with a `tf.custom_gradient`
where one that keeps the input alone computes erfc, or mish's exponential, twice. Words name hosts, and rules:

    python benchmarks/activations.py [--processes 5] [--cpu] [TensorFlow] [JAX] [PyTorch] [gelu] [geglu] …
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import jax.numpy as jnp
import keras
import numpy as np
import tensorflow as tf
import torch
from side_by_side import fastest_of_processes, floors, judge, tell
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))
import kept_bytes

import pullback as pb

# M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h
for option, size in ((-1, 2**30), (-3, 2**25)):
    getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)(option, size)

ops = pb.ops
ROWS, COLUMNS = 1024, 1024
HOSTS = ("JAX", "PyTorch", "TensorFlow")
ROUNDS, CALLS = 15, 5
# What PyTorch's own norms keep: two numbers a row, and with what is given four a channel.
STATISTICS = {"layer_norm": 2 * ROWS * 4, "batch_norm": 4 * COLUMNS * 4}


def tf_layer_norm(x, scale, offset):
    return tf.nn.batch_normalization(x, *tf.nn.moments(x, [-1], keepdims=True), offset, scale, 1e-5)


def tf_batch_norm(x, scale, offset):
    return tf.nn.batch_normalization(x, *tf.nn.moments(x, [0]), offset, scale, 1e-5)


def tf_rms_norm(x, scale):
    return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6) * scale


def jax_layer_norm(x, scale, offset):
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + offset


def jax_batch_norm(x, scale, offset):
    mean, variance = jnp.mean(x, 0), jnp.var(x, 0)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + offset


def jax_rms_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def batch_norm(x, scale, offset):
    return ops.batch_norm(x, scale, offset)[0]


def tanh_gelu(x):
    return ops.gelu(x, approximate="tanh")


# name → ours, TensorFlow's, JAX's and PyTorch's own, and which inputs: a matrix each, or a row
PAIRS = {
    "gelu": (ops.gelu, tf.nn.gelu, lambda x: jax.nn.gelu(x, approximate=False), functional.gelu, "x"),
    "gelu tanh": (
        tanh_gelu,
        lambda x: tf.nn.gelu(x, approximate=True),
        jax.nn.gelu,
        lambda x: functional.gelu(x, approximate="tanh"),
        "x",
    ),
    "silu": (ops.silu, tf.nn.silu, jax.nn.silu, functional.silu, "x"),
    "mish": (ops.mish, keras.activations.mish, jax.nn.mish, functional.mish, "x"),
    "swiglu": (
        ops.swiglu,
        lambda g, x: tf.nn.silu(g) * x,
        lambda g, x: jax.nn.silu(g) * x,
        lambda g, x: functional.silu(g) * x,
        "xx",
    ),
    "geglu": (
        ops.geglu,
        lambda g, x: tf.nn.gelu(g) * x,
        lambda g, x: jax.nn.gelu(g, approximate=False) * x,
        lambda g, x: functional.gelu(g) * x,
        "xx",
    ),
    "rms_norm": (
        ops.rms_norm,
        tf_rms_norm,
        jax_rms_norm,
        lambda x, scale: functional.rms_norm(x, (COLUMNS,), scale, 1e-6),
        "xr",
    ),
    "layer_norm": (
        ops.layer_norm,
        tf_layer_norm,
        jax_layer_norm,
        lambda x, scale, offset: functional.layer_norm(x, (COLUMNS,), scale, offset),
        "xrr",
    ),
    "batch_norm": (
        batch_norm,
        tf_batch_norm,
        jax_batch_norm,
        lambda x, scale, offset: functional.batch_norm(x, None, None, scale, offset, True),
        "xrr",
    ),
}


def arrays(letters):
    rng = np.random.default_rng(1)
    shapes = {"x": (ROWS, COLUMNS), "r": (COLUMNS,)}
    return [rng.normal(size=shapes[letter]).astype(np.float32) for letter in letters]


# ── PyTorch's own kernels, where a rule keeps less than its own, or gives more ───────────────────────────

aten = torch.ops.aten


def gated(activation, pull):
    """Give the kernels of activation(gate)·x, whose pullback has to compute the activation again."""

    def pulled(dy, gate, x):
        over = dy * x
        return pull(over, gate, grad_input=over), activation(gate).mul_(dy)

    return lambda gate, x: (activation(gate).mul_(x), (gate, x)), pulled


def batch_norm_value(x, scale, offset):
    mean, variance = torch.zeros(COLUMNS), torch.zeros(COLUMNS)
    y, *statistics = aten.native_batch_norm(x, scale, offset, mean, variance, True, 1.0, 1e-5)
    return (y, mean, variance * ((ROWS - 1) / ROWS)), (x, scale, *statistics)


def batch_norm_pulled(dy, dmean, dvariance, x, scale, mean, rate):
    found = aten.native_batch_norm_backward(dy, x, scale, None, None, mean, rate, True, 1e-5, [True] * 3)
    if dmean.any() or dvariance.any():
        raise NotImplementedError
    return found


# by hand: inputs ↦ outputs and what is kept; cotangents and what is kept ↦ cotangents
KERNELS = {
    "swiglu": gated(functional.silu, aten.silu_backward.grad_input),
    "geglu": gated(functional.gelu, aten.gelu_backward.grad_input),
    "batch_norm": (batch_norm_value, batch_norm_pulled),
}


# ── TensorFlow's own operations, where what is not kept has to be computed again ────────────────────────


def cdf(x):
    return 0.5 * tf.math.erfc(x * -(0.5**0.5))


def slope(x, phi):
    return phi + x * (tf.exp(x * x * -0.5) * (2 * np.pi) ** -0.5)


@tf.custom_gradient
def gelu_by_hand(x):
    return x * cdf(x), lambda dy: dy * slope(x, cdf(x))


@tf.custom_gradient
def geglu_by_hand(gate, x):
    def grad(dy):
        phi = cdf(gate)
        return dy * x * slope(gate, phi), dy * (gate * phi)

    return gate * cdf(gate) * x, grad


@tf.custom_gradient
def mish_by_hand(x):
    def grad(dy):
        e = tf.exp(x)  # softplus takes five times as long, and 1 − tanh² has lost its digits above 5
        n = e * (e + 2)
        rest = 1 / (n + 2)
        return dy * ((n + x * (n - e) * (4 * rest)) * rest)

    n = tf.exp(x)
    n *= n + 2
    return x * (n / (n + 2)), grad


OPERATIONS = {"gelu": gelu_by_hand, "geglu": geglu_by_hand, "mish": mish_by_hand}


# ── one step, forward and back ───────────────────────────────────────────────────────────────────────────


def tensorflow_step(f, tensors, compiled=False):
    dy = tf.ones([ROWS, COLUMNS])

    def step(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            y = f(*tensors)
        return tape.gradient(y, tensors, dy)

    run = tf.function(step, jit_compile=True) if compiled else step
    return lambda: run(*tensors)


def compiled_step(f, tensors):
    return tensorflow_step(f, tensors, compiled=True)


def jax_step(f, given):
    dy = jnp.ones([ROWS, COLUMNS])
    run = jax.jit(lambda *xs: jax.vjp(f, *xs)[1](dy))
    return lambda: jax.block_until_ready(run(*given))


def torch_step(f, tensors):
    dy = torch.ones([ROWS, COLUMNS])
    return lambda: torch.autograd.grad(f(*tensors), tensors, dy)


def by_hand(name):
    """Give PyTorch's own kernels, forward and backward, in the shortest Function that calls them."""
    forward, backward = KERNELS[name]

    class Hand(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            outputs, kept = forward(*inputs)
            ctx.save_for_backward(*kept)
            return outputs

        @staticmethod
        def backward(ctx, *dys):
            return backward(*dys, *ctx.saved_tensors)

    def applied(*inputs):
        found = Hand.apply(*inputs)
        return found[0] if isinstance(found, tuple) else found

    return applied


def measured(host, rules, clock):
    """Give the bytes that each rule and the built-in keep, and the time of each arm of each way."""
    kept, times = {}, {}
    for name in rules:
        ours, of_tf, of_jax, of_torch, letters = PAIRS[name]
        given = arrays(letters)
        if host == "TensorFlow":
            native, inputs, count = of_tf, [tf.constant(a) for a in given], kept_bytes.of_tensorflow
            ways = {"TensorFlow eager": tensorflow_step, "TensorFlow XLA": compiled_step}
        elif host == "JAX":
            native, inputs, count = of_jax, [jnp.asarray(a) for a in given], None
            ways = {"JAX jit": jax_step}
        else:
            native, inputs = of_torch, [torch.tensor(a, requires_grad=True) for a in given]
            count, ways = kept_bytes.of_torch, {"PyTorch eager": torch_step}
        if count is not None:
            kept[name] = count(ours, *inputs), count(native, *inputs)
        for way, make in ways.items():
            arms = {"native": make(native, inputs), "ours": make(ours, inputs), "again": make(native, inputs)}
            if way == "PyTorch eager" and name in KERNELS:
                arms["hand"] = make(by_hand(name), inputs)
            if way == "TensorFlow eager" and name in OPERATIONS:
                arms["hand"] = make(OPERATIONS[name], inputs)
            times[f"{way} {name}"] = floors(arms, calls=CALLS, rounds=ROUNDS, clock=clock)
    return {"kept": kept, "time": times}


def judged(host, found):
    """Print what was measured of a host, and give it as rows for the judge."""
    for name, (mine, theirs) in found["kept"].items():
        print(f"{host} {name}: kept {mine / 2**20:.2f} MiB, its own {theirs / 2**20:.2f} MiB")
        statistics = float(host == "PyTorch" and STATISTICS.get(name, 0))
        yield f"{host} {name}: bytes kept beyond the inputs", float(mine), statistics
    for way, t in found["time"].items():
        floor = min(t["native"], t["again"])
        noise = min(max(t["native"], t["again"]) / floor - 1, 0.05)
        print(f"{way}: ours {t['ours']:.0f} µs, its own {floor:.0f} µs, told apart {noise:.1%}")
        least = t.get("hand", floor) / floor
        if "hand" in t:
            print(f"{way}: the same, by hand, / built-in {least:.3f}")
        yield f"{way}: step / built-in", t["ours"] / floor, max(least, 1.0) + noise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*", help="names of hosts, and of rules")
    parser.add_argument("--processes", type=int, default=5, help="of each host")
    parser.add_argument("--cpu", action="store_true", help="count the time of the processor, on one thread")
    parser.add_argument("--inside", choices=HOSTS)
    options = parser.parse_args()
    rules = [name for name in PAIRS if name in options.words] or list(PAIRS)
    if options.cpu:
        torch.set_num_threads(1)
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    if options.inside:
        tell(measured(options.inside, rules, time.process_time if options.cpu else time.perf_counter))
        return
    results = []
    for host in [host for host in HOSTS if host in options.words] or HOSTS:
        found = fastest_of_processes(options.processes, __file__, "--inside", host, *sys.argv[1:])
        results += judged(host, found)
    judge(results)


if __name__ == "__main__":
    main()
