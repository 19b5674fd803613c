"""How do I write a gradient for one and for many inputs and outputs?

`grad` takes one cotangent per output, and returns one per argument. Arguments that are no tensors need none.
"""

import numpy as np
import tensorflow as tf

import pullback as pb


@pb.custom_gradient
def square(x):
    """One input, one output."""

    def grad(dy):
        return 2 * x * dy

    return x**2, grad


@pb.custom_gradient
def mix(x, y):
    """Two inputs, two outputs: z = x·y + sin x, w = y²."""

    def grad(dz, dw):
        return dz * (y + tf.cos(x)), dz * x + dw * 2 * y

    return x * y + tf.sin(x), y**2, grad


@pb.custom_gradient
def affine(x, scale, bias, *, activation="linear"):
    """A broadcast bias, a static, and cotangents by name."""
    z = x * scale + bias
    alive = tf.cast(z > 0, z.dtype) if activation == "relu" else tf.ones_like(z)

    def grad(dy):
        dz = dy * alive
        return {
            "x": pb.unbroadcast(dz * scale, like=x),
            "scale": pb.unbroadcast(dz * x, like=scale),
            "bias": pb.unbroadcast(dz, like=bias),
        }

    return z * alive, grad


def gradients(function, *inputs):
    """Differentiate the sum of all outputs."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        total = sum(tf.reduce_sum(output) for output in tf.nest.flatten(function(*inputs)))
    return [g.numpy() for g in tape.gradient(total, inputs)]


if __name__ == "__main__":
    x, y = tf.constant([2.0, -1.0]), tf.constant([3.0, 0.5])
    np.testing.assert_allclose(gradients(square, x)[0], 2 * x)
    expected = gradients(lambda x, y: (x * y + tf.sin(x), y**2), x, y)
    np.testing.assert_allclose(gradients(mix, x, y), expected, rtol=1e-6)
    np.testing.assert_allclose(gradients(tf.function(mix), x, y), expected, rtol=1e-6)
    print("two inputs, two outputs:", *gradients(mix, x, y))

    batch, bias = tf.constant([[1.0, -2.0], [3.0, 4.0], [-5.0, 6.0]]), tf.constant([0.5, -0.5])
    by_keyword = gradients(lambda x, s, b: affine(x, scale=s, bias=b, activation="relu"), batch, x, bias)
    for found, wanted in zip(by_keyword, gradients(lambda x, s, b: tf.nn.relu(x * s + b), batch, x, bias)):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    print("by keyword, with a broadcast bias:", by_keyword[2])
