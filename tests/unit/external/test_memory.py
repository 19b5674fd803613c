"""A training loop through an external function keeps no tensor of the steps that are done."""

import gc

import numpy as np
import pytest
import tensorflow as tf
import torch
from leaks import gain

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

    def steps(count=STEPS):
        nonlocal x
        for _ in range(count):
            x = step(f, x)

    gc.collect()
    gc.disable()
    try:
        steps(5)
        tensors = live(kind)
        assert gain(steps, limit := 10 * 4 * SIZE) < limit  # of 200 times as much
        assert live(kind) == tensors
    finally:
        gc.enable()
