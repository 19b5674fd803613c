"""One way to run and differentiate a function in every framework, eagerly and compiled."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch


def _tensorflow(f, arrays, cotangent, compiled):
    tensors = [tf.constant(a) for a in arrays]
    run = tf.function(f) if compiled else f
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = run(*tensors)
    dy = None if cotangent is None else tf.constant(cotangent)
    return np.asarray(y), [None if g is None else np.asarray(g) for g in tape.gradient(y, tensors, dy)]


def _jax(f, arrays, cotangent, compiled):
    with jax.enable_x64(True):
        tensors = [jnp.asarray(a) for a in arrays]

        def both(*tensors):
            y, pull = jax.vjp(f, *tensors)
            return y, pull(jnp.ones_like(y) if cotangent is None else jnp.asarray(cotangent))

        y, dx = (jax.jit(both) if compiled else both)(*tensors)
        return np.asarray(y), [np.asarray(g) for g in dx]


def _torch(f, arrays, cotangent, compiled):
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    if compiled:
        torch.compiler.reset()  # the same code is compiled more often than PyTorch allows
    y = (torch.compile(f, backend="aot_eager") if compiled else f)(*tensors)
    y.backward(torch.ones_like(y) if cotangent is None else torch.tensor(cotangent))
    return y.detach().numpy(), [t.grad.numpy() for t in tensors]


RUN = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}
EVERYWHERE = [(name, compiled) for name in RUN for compiled in (False, True)]


def vjp(framework, f, *arrays, cotangent=None, compiled=False):
    """Give the value of a function and its gradients, as NumPy arrays."""
    return RUN[framework](f, arrays, cotangent, compiled)


def batch(framework, f, *arrays, axes):
    """Map a function over the first axis of some of its arguments."""
    if framework == "tensorflow":
        tensors = [tf.constant(a) for a in arrays]
        mapped = [t for t, axis in zip(tensors, axes) if axis == 0]

        def one(parts):
            rest = iter(parts)
            return f(*(next(rest) if axis == 0 else t for t, axis in zip(tensors, axes)))

        return np.asarray(tf.vectorized_map(one, mapped))
    if framework == "jax":
        with jax.enable_x64(True):
            return np.asarray(jax.vmap(f, axes)(*map(jnp.asarray, arrays)))
    return torch.func.vmap(f, axes)(*map(torch.tensor, arrays)).numpy()
