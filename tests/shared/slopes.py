"""The value and the slopes of a function on each framework: NumPy in, NumPy out.

Slopes are the gradient of the sum, or of the sum that a cotangent weighs. JAX runs what it compiled, because
every operation alone is compiled, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

FRAMEWORKS = ("tensorflow", "jax", "torch")


def slopes(
    framework: str, f: Callable[..., Any], arrays: Sequence[np.ndarray], dy: np.ndarray | None = None
) -> list[np.ndarray]:
    """Give the value of a function, then its gradient with respect to each array."""
    return _ASKED[framework](f, list(arrays), dy)


def second(framework: str, f: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    """Give the second derivative of an elementwise function of one array."""
    return _SECOND[framework](f, x)


def _tensorflow(f: Any, arrays: list[np.ndarray], dy: Any) -> list[np.ndarray]:
    import tensorflow as tf

    xs = [tf.constant(a) for a in arrays]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    seed = None if dy is None else tf.constant(dy)
    return [np.asarray(z.numpy()) for z in (y, *tape.gradient(y, xs, seed))]


def _second_tensorflow(f: Any, x: np.ndarray) -> np.ndarray:
    import tensorflow as tf

    t = tf.constant(x)
    with tf.GradientTape() as outer:
        outer.watch(t)
        with tf.GradientTape() as inner:
            inner.watch(t)
            y = f(t)
        slope = inner.gradient(y, t)
    return np.asarray(outer.gradient(slope, t))


def _jax(f: Any, arrays: list[np.ndarray], dy: Any) -> list[np.ndarray]:
    import jax

    with jax.enable_x64(True):

        def both(*xs: Any) -> Any:
            y, pull = jax.vjp(f, *xs)
            return y, *pull(jax.numpy.ones_like(y) if dy is None else jax.numpy.asarray(dy))

        return [np.asarray(z) for z in jax.jit(both)(*map(jax.numpy.asarray, arrays))]


def _second_jax(f: Any, x: np.ndarray) -> np.ndarray:
    import jax

    with jax.enable_x64(True):
        slope = jax.grad(lambda x: f(x).sum())
        return np.asarray(jax.jit(jax.grad(lambda x: slope(x).sum()))(jax.numpy.asarray(x)))


def _to_torch(a: np.ndarray) -> Any:
    import torch

    if a.dtype.name == "bfloat16":  # NumPy's guest, and none of PyTorch's
        return torch.tensor(a.astype(np.float32)).to(torch.bfloat16)
    return torch.tensor(a)


def _from_torch(t: Any) -> np.ndarray:
    return t.detach().double().numpy()  # every dtype fits, and NumPy lacks one


def _torch(f: Any, arrays: list[np.ndarray], dy: Any) -> list[np.ndarray]:
    import torch

    xs = [_to_torch(a).requires_grad_() for a in arrays]
    y = f(*xs)
    return [
        _from_torch(z)
        for z in (y, *torch.autograd.grad(y, xs, torch.ones_like(y) if dy is None else _to_torch(dy)))
    ]


def _second_torch(f: Any, x: np.ndarray) -> np.ndarray:
    import torch

    t = _to_torch(x).requires_grad_()
    y = f(t)
    (slope,) = torch.autograd.grad(y.sum(), t, create_graph=True)
    return _from_torch(torch.autograd.grad(slope.sum(), t)[0])


_ASKED = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}
_SECOND = {"tensorflow": _second_tensorflow, "jax": _second_jax, "torch": _second_torch}
