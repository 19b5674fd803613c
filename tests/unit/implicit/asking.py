"""Each framework asked for the same derivatives in its own words: NumPy in, NumPy out."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch


class TensorFlow:
    name = "tensorflow"
    tensor = staticmethod(tf.constant)

    def _pull(self, f, xs, dz):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = f(*xs)
        return y, tape.gradient(y, xs, output_gradients=tf.constant(dz))

    def pulled(self, f, arrays, dz):
        y, found = self._pull(f, list(map(tf.constant, arrays)), dz)
        return y.numpy(), [g.numpy() for g in found]

    def otherwise(self, f, arrays, dz):
        y, found = tf.function(lambda *xs: self._pull(f, list(xs), dz))(*map(tf.constant, arrays))
        return y.numpy(), [g.numpy() for g in found]

    def pushed(self, f, arrays, along):
        xs = list(map(tf.constant, arrays))
        with tf.autodiff.ForwardAccumulator(xs, list(map(tf.constant, along))) as forward:
            y = f(*xs)
        return forward.jvp(y).numpy()

    def second(self, f, arrays, dz, along):
        xs = list(map(tf.constant, arrays))
        with tf.GradientTape() as tape:
            tape.watch(xs)
            first = self._pull(f, xs, dz)[1]
        return [g.numpy() for g in tape.gradient(first, xs, output_gradients=list(map(tf.constant, along)))]

    def pushed_pull(self, f, arrays, dz, along):
        xs = list(map(tf.constant, arrays))
        with tf.autodiff.ForwardAccumulator(xs, list(map(tf.constant, along))) as forward:
            first = self._pull(f, xs, dz)[1]
        return [g.numpy() for g in forward.jvp(first)]


class Jax:
    name = "jax"
    tensor = staticmethod(jnp.asarray)

    def _pull(self, f, dz):
        return lambda *xs: list(jax.vjp(f, *xs)[1](jnp.asarray(dz)))

    def pulled(self, f, arrays, dz):
        ask = jax.jit(lambda xs: (f(*xs), self._pull(f, dz)(*xs)))
        y, found = ask(tuple(arrays))
        return np.asarray(y), list(map(np.asarray, found))

    def otherwise(self, f, arrays, dz):
        y, pull = jax.vjp(f, *map(jnp.asarray, arrays))
        return np.asarray(y), list(map(np.asarray, pull(jnp.asarray(dz))))

    def pushed(self, f, arrays, along):
        return np.asarray(jax.jit(lambda xs, ds: jax.jvp(f, xs, ds)[1])(tuple(arrays), tuple(along)))

    def second(self, f, arrays, dz, along):
        ask = jax.jit(lambda xs, ds: jax.vjp(self._pull(f, dz), *xs)[1](ds))
        return list(map(np.asarray, ask(list(arrays), list(along))))

    def pushed_pull(self, f, arrays, dz, along):
        ask = jax.jit(lambda xs, ds: jax.jvp(self._pull(f, dz), xs, ds)[1])
        return list(map(np.asarray, ask(tuple(arrays), tuple(along))))


class Torch:
    name = "torch"
    tensor = staticmethod(torch.as_tensor)

    def _leaves(self, arrays):
        return [torch.tensor(a, requires_grad=True) for a in arrays]

    def pulled(self, f, arrays, dz):
        xs = self._leaves(arrays)
        y = f(*xs)
        return y.detach().numpy(), [g.numpy() for g in torch.autograd.grad(y, xs, torch.as_tensor(dz))]

    def otherwise(self, f, arrays, dz):
        y, pull = torch.func.vjp(f, *map(torch.as_tensor, arrays))
        return y.numpy(), [g.numpy() for g in pull(torch.as_tensor(dz))]

    def pushed(self, f, arrays, along):
        return torch.func.jvp(f, *(tuple(map(torch.as_tensor, side)) for side in (arrays, along)))[1].numpy()

    def second(self, f, arrays, dz, along):
        xs = self._leaves(arrays)
        first = torch.autograd.grad(f(*xs), xs, torch.as_tensor(dz), create_graph=True)
        return [g.numpy() for g in torch.autograd.grad(first, xs, list(map(torch.as_tensor, along)))]

    def pushed_pull(self, f, arrays, dz, along):
        def pull(*xs):
            return torch.func.vjp(f, *xs)[1](torch.as_tensor(dz))

        given = (tuple(map(torch.as_tensor, side)) for side in (arrays, along))
        return [g.numpy() for g in torch.func.jvp(pull, *given)[1]]


HOSTS = [TensorFlow(), Jax(), Torch()]
