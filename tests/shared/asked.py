"""One question to every framework, NumPy in and NumPy out: values, and what cotangents are pulled back to."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf
import torch

TORCH = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def to_torch(a):
    return (
        torch.tensor(np.asarray(a, np.float32)).to(TORCH[a.dtype.name])
        if a.dtype.name in TORCH
        else torch.tensor(a)
    )


def to_numpy(t):
    """Give a tensor of PyTorch as an array: half precision as float32, which holds it."""
    return t.detach().to(torch.float32).numpy() if t.dtype in TORCH.values() else t.detach().numpy()


def ask_tensorflow(f, arrays, dys=None):
    tensors = [tf.constant(a) for a in arrays]
    with tf.GradientTape() as tape:
        tape.watch([t for t in tensors if t.dtype.is_floating])
        ys = tf.nest.flatten(f(*tensors))
    dys = [tf.cast(dy, y.dtype) for dy, y in zip(dys or map(np.ones, [y.shape for y in ys]), ys)]
    found = tape.gradient(ys, tensors, dys, unconnected_gradients="zero")
    return [y.numpy() for y in ys], [g.numpy() for g in found]


def ask_jax(f, arrays, dys=None):
    with jax.enable_x64(True):
        moving = [i for i, a in enumerate(arrays) if a.dtype.kind in "fV"]

        def of_moving(*xs):
            full = list(map(jnp.asarray, arrays))
            for i, x in zip(moving, xs):
                full[i] = x
            return jax.tree.leaves(f(*full))

        def both(*xs):
            ys, pull = jax.vjp(of_moving, *xs)
            given = dys or [np.ones(y.shape) for y in ys]
            return ys, pull([jnp.asarray(dy, y.dtype) for dy, y in zip(given, ys)])

        # One program: to compile operation by operation is nearly all that an answer costs. Who asks about
        # eager mode asks in `jax.disable_jit()`.
        ys, found = jax.jit(both)(*(jnp.asarray(arrays[i]) for i in moving))
        return list(map(np.asarray, ys)), list(map(np.asarray, found))


def ask_torch(f, arrays, dys=None):
    tensors = [to_torch(a) for a in arrays]
    moving = [t.requires_grad_() for t in tensors if t.is_floating_point()]
    ys = f(*tensors)
    ys = [ys] if isinstance(ys, torch.Tensor) else list(ys)
    dys = [
        torch.as_tensor(np.asarray(dy, np.float64)).to(y.dtype)
        for dy, y in zip(dys or [np.ones(y.shape) for y in ys], ys)
    ]
    return list(map(to_numpy, ys)), list(map(to_numpy, torch.autograd.grad(ys, moving, dys)))


ASK = {"tensorflow": ask_tensorflow, "jax": ask_jax, "torch": ask_torch}
# by name: NumPy's dtype, and the roundoff of one operation
DTYPES = {
    "float64": (np.float64, 2.0**-53),
    "float32": (np.float32, 2.0**-24),
    "float16": (np.float16, 2.0**-11),
    "bfloat16": (ml_dtypes.bfloat16, 2.0**-8),
}
