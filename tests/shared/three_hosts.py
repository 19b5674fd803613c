"""The three hosts behind one way to differentiate, eager and compiled, for functions of any structure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb


class TensorFlow:
    def tensor(self, x):
        return tf.constant(x)

    def wrap(self, compiled):
        return tf.function if compiled else lambda f: f

    def gradients(self, f, xs, *, compiled=False):
        """The gradients of the sum of squares of all outputs."""

        def run(*xs):
            with tf.GradientTape() as tape:
                tape.watch(xs)
                loss = energy(f(*xs))
            return tape.gradient(loss, xs, unconnected_gradients="zero")

        return [np.asarray(tf.convert_to_tensor(g)) for g in self.wrap(compiled)(run)(*xs)]

    def push(self, f, x, dx, *, compiled=False):
        def run(x):
            with tf.autodiff.ForwardAccumulator(x, dx) as accumulator:
                loss = energy(f(x))
            return accumulator.jvp(loss)

        return np.asarray(self.wrap(compiled)(run)(x))

    def gradient(self, f, x):
        """The gradient as a tensor, for higher orders."""
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = energy(f(x))
        return tape.gradient(loss, x)


class Jax:
    def tensor(self, x):
        return jnp.asarray(x)

    def wrap(self, compiled):
        return jax.jit if compiled else lambda f: f

    def gradients(self, f, xs, *, compiled=False):
        found = self.wrap(compiled)(jax.grad(lambda *xs: energy(f(*xs)), tuple(range(len(xs)))))(*xs)
        return [np.asarray(g) for g in found]

    def push(self, f, x, dx, *, compiled=False):
        return np.asarray(self.wrap(compiled)(lambda x: jax.jvp(lambda x: energy(f(x)), (x,), (dx,))[1])(x))

    def gradient(self, f, x):
        return jax.grad(lambda x: energy(f(x)))(x)


class Torch:
    def tensor(self, x):
        return torch.tensor(x)

    def wrap(self, compiled):
        return lambda f: f  # Dynamo takes seconds: compiled functions have a test of their own

    def gradients(self, f, xs, *, compiled=False):
        xs = [x.detach().requires_grad_() for x in xs]
        loss = energy(f(*xs))
        return [np.asarray(g) for g in torch.autograd.grad(loss, xs, materialize_grads=True)]

    def push(self, f, x, dx, *, compiled=False):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, dx)
            return np.asarray(torch.autograd.forward_ad.unpack_dual(energy(f(dual))).tangent.detach())

    def gradient(self, f, x):
        x = x if x.requires_grad else x.detach().requires_grad_()
        return torch.autograd.grad(energy(f(x)), x, create_graph=True)[0]


@tf.autograph.experimental.do_not_convert
def energy(outputs):
    """Sum the squares of all floating tensors in a structure, each with a weight of its own."""
    found, waiting, weight = 0.0, [outputs], 1.0
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, dict):
            waiting += [value[key] for key in sorted(value)]
        elif isinstance(value, (tuple, list)):
            waiting += value
        elif hasattr(value, "dtype") and "float" in str(value.dtype):
            found = found + weight * pb.namespace(value).sum(value * value)
            weight += 0.7
    return found


HOSTS = {"tensorflow": TensorFlow(), "jax": Jax(), "torch": Torch()}


@pytest.fixture(params=HOSTS.values(), ids=HOSTS)
def host(request):
    return request.param


def close(found, expected, tolerance=1e-5):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)
