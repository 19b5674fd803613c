"""How do I give ReLU a leaky gradient?

A unit that is negative for every example has no gradient and never learns again. Forward this is exactly
ReLU; backward a negative input passes a small part of its gradient.
"""

import numpy as np
import tensorflow as tf

import pullback as pb

SLOPE = 0.1


def leaky_relu(x):
    """The function whose derivative is used."""
    return tf.nn.leaky_relu(x, SLOPE)


@pb.custom_gradient(like=leaky_relu)
def relu(x):
    """ReLU forward, leaky ReLU backward."""

    def grad(dy):
        return tf.where(x > 0, dy, SLOPE * dy)

    return tf.nn.relu(x), grad


def train(activation, steps=200):
    """Fit one unit, dead at the start, to y = x on positive numbers; give its weight and bias."""
    x = tf.constant([0.5, 1.0, 1.5, 2.0])
    weight, bias = tf.Variable(-1.0), tf.Variable(-0.5)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((activation(weight * x + bias) - x) ** 2)
        for variable, slope in zip((weight, bias), tape.gradient(loss, (weight, bias))):
            variable.assign_sub(0.2 * slope)
        return loss

    for _ in range(steps):
        loss = step()
    return float(weight), float(bias), float(loss)


if __name__ == "__main__":
    x = tf.constant([-2.0, -0.5, 0.5, 2.0])
    np.testing.assert_array_equal(relu(x), tf.nn.relu(x))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = relu(x)
    slopes = tape.gradient(y, x)
    np.testing.assert_allclose(slopes, [SLOPE, SLOPE, 1.0, 1.0])
    print("gradient:", slopes.numpy(), "←", relu.rule.intent)

    dead, alive = train(tf.nn.relu), train(relu)
    assert dead[:2] == (-1.0, -0.5), "plain ReLU never moves a dead unit"
    assert alive[2] < 1e-4 < dead[2], "the leaky gradient revives it"
    print(f"plain ReLU: loss {dead[2]:.3f} after 200 steps, the unit stayed dead")
    print(f"leaky gradient: loss {alive[2]:.6f}, weight {alive[0]:.3f}, bias {alive[1]:.3f}")
