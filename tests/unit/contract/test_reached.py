"""A captured tensor that is refused is called what the user calls it."""

import jax
import jax.numpy as jnp
import pytest
import tensorflow as tf
import torch

import pullback as pb


def by_tape(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def by_tape_outside(function, x):
    return by_tape(tf.function(function), x)


def by_vjp(function, x):
    return jax.grad(lambda x: function(x).sum())(x)


def by_jit(function, x):
    return jax.jit(lambda x: by_vjp(function, x))(x)


def by_backward(function, x):
    return function(x.requires_grad_()).sum().backward()


def by_func(function, x):
    return torch.func.grad(lambda x: function(x).sum())(x)


MODES = {
    by_tape: tf.constant,
    by_tape_outside: tf.constant,
    by_vjp: jnp.asarray,
    by_jit: jnp.asarray,
    by_backward: torch.tensor,
    by_func: torch.tensor,
}


class Held:
    """Hold a tensor in one of many ways."""

    def __init__(self, gain):
        self.gain = gain
        self.inner = type("Inner", (), {})()
        self.inner.parts = [None, gain * 1.0]
        self.table = {"gain": gain * 1.0}

    @pb.custom_gradient
    def by_attribute(self, x):
        def grad(dy):
            return dy * self.gain

        return x * self.gain, grad

    @pb.custom_gradient
    def by_list(self, x):
        def grad(dy):
            return dy * self.inner.parts[1]

        return x * self.inner.parts[1], grad

    @pb.custom_gradient
    def by_dict(self, x):
        def grad(dy):
            return dy * self.table["gain"]

        return x * self.table["gain"], grad

    @property
    def by_closure(self):
        @pb.custom_gradient
        def scale(x):
            def grad(dy):
                return dy * self.gain

            return x * self.gain, grad

        return scale


NAMES = {
    "by_attribute": "self.gain",
    "by_list": "self.inner.parts[1]",
    "by_dict": "self.table['gain']",
    "by_closure": "self.gain",
}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("way", NAMES)
def test_a_captured_tensor_is_refused_by_the_name_that_reaches_it(way, mode):
    make = MODES[mode]
    ones = make([1.0, 1.0, 1.0])
    with pytest.raises(pb.errors.CapturedTensorError) as caught:
        mode(lambda x: getattr(Held(2 * x), way)(ones * 1.0), make([1.0, -2.0, 3.0]))
    assert f"the body uses `{NAMES[way]}`" in str(caught.value)
