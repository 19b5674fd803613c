"""A training loop through an external function keeps no tensor of the steps that are done."""

import gc
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb

SIZE = 1_000_000  # floats: 4 MB
STEPS = 200
OPTIONS = {
    "a pullback": {},
    "a second order": {"second": "central"},
    "a cache": {"cache": 2},
    "an unknown output": {"output": None},
}


def sines(**options):
    f = pb.external(np.sin, **{"output": lambda x: x, **options})
    f.pullback(lambda dy, x: dy * np.cos(x))
    return f


def live(kind):
    """Count the tensors that are alive, those that only the collector could free among them."""
    return sum(1 for thing in gc.get_objects() if issubclass(type(thing), kind))


def resident():
    """Give the bytes that this process holds; nothing where the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text(encoding="ascii").split()[1]) * 4096 if statm.exists() else 0


def tensorflow_step(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(f(x))
    return x - 0.01 * tape.gradient(y, x)


def torch_step(f, x):
    f(x).sum().backward()
    return (x.detach() - 0.01 * x.grad).requires_grad_()


LOOPS = {
    "tensorflow": (tf.Tensor, lambda: tf.fill([SIZE], 0.5), tensorflow_step),
    "torch": (torch.Tensor, lambda: torch.full([SIZE], 0.5, requires_grad=True), torch_step),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("framework", LOOPS)
def test_live_tensors_and_memory_are_flat(framework, options):
    kind, make, step = LOOPS[framework]
    f, x = sines(**OPTIONS[options]), make()
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            x = step(f, x)
        tensors, memory = live(kind), resident()
        for _ in range(STEPS):
            x = step(f, x)
        assert live(kind) == tensors
        assert resident() - memory < 10 * 4 * SIZE  # of 200 times as much
    finally:
        gc.enable()
