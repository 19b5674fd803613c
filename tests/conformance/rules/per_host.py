"""One rule, with a body in each framework's own functions."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

import pullback as pb

X = np.array([0.7, -1.3, 2.1])


@pb.custom_gradient
@pb.example(X)
def _in_tensorflow(x):
    y = tf.nn.silu(x)

    def grad(dy):
        s = tf.sigmoid(x)
        return dy * (s + x * s * (1 - s))

    return y, grad


@pb.custom_gradient
@pb.example(X)
def _in_jax(x):
    y = jax.nn.silu(x)

    def grad(dy):
        s = jax.nn.sigmoid(x)
        return dy * (s + x * s * (1 - s))

    return jnp.asarray(y), grad


@pb.custom_gradient
@pb.example(X)
def _in_torch(x):
    y = torch.nn.functional.silu(x)

    def grad(dy):
        s = torch.sigmoid(x)
        return dy * (s + x * s * (1 - s))

    return y, grad


swish = {"tensorflow": _in_tensorflow, "jax": _in_jax, "torch": _in_torch}
