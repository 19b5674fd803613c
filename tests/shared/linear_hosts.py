"""One way to take values and gradients of a loss in every framework and mode."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch


def _tensorflow(f, arrays, wrap):
    tensors = [tf.constant(a) for a in arrays]
    moving = [t for t in tensors if t.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(moving)
        y = wrap(f)(*tensors)
    return y, tape.gradient(y, moving)


def _jax(f, arrays, wrap):
    tensors = [jnp.asarray(a) for a in arrays]
    moving = [i for i, t in enumerate(tensors) if jnp.issubdtype(t.dtype, jnp.floating)]

    def summed(*tensors):
        y = f(*tensors)
        return y.sum(), y

    gradients, y = wrap(jax.grad(summed, moving, has_aux=True))(*tensors)
    return y, gradients


def _torch(f, arrays, wrap):
    tensors = [torch.tensor(a) for a in arrays]
    moving = [t.requires_grad_() for t in tensors if t.dtype.is_floating_point]
    y = wrap(f)(*tensors)
    return y.detach(), torch.autograd.grad(y.sum(), moving)


def _same(f):
    return f


MODES = {
    "tensorflow eager": (_tensorflow, _same),
    "tensorflow graph": (_tensorflow, tf.function),
    "tensorflow xla": (_tensorflow, lambda f: tf.function(f, jit_compile=True)),
    "jax eager": (_jax, _same),
    "jax jit": (_jax, jax.jit),
    "torch eager": (_torch, _same),
}
EAGER = [mode for mode in MODES if mode.endswith("eager")]


def value_and_gradients(mode, f, arrays):
    """Give f and the gradients of its sum with respect to the floating arrays, in NumPy."""
    run, wrap = MODES[mode]
    with jax.enable_x64(True):
        y, gradients = run(f, arrays, wrap)
        return np.asarray(y), [np.asarray(g) for g in gradients]


def close(found, expected, **tolerance):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)
