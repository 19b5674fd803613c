"""How do I train a network whose weights and activations are quantised?

Round in the forward pass, and let the gradient pass straight through the rounding. With 4 bits for weights
and activations the network comes within two points of the one that computes in float32.
"""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import pullback as pb

BITS = 4


@pb.straight_through
def quantise(w):
    """The nearest of 2^BITS levels between −max|w| and max|w|."""
    step = tf.reduce_max(tf.abs(w)) / (2 ** (BITS - 1) - 1) + 1e-9
    return tf.round(w / step) * step


class QuantisedDense(keras.layers.Dense):
    """A dense layer that multiplies quantised numbers by quantised weights."""

    def call(self, x):
        y = tf.matmul(quantise(x), quantise(tf.convert_to_tensor(self.kernel))) + self.bias
        return self.activation(y)


def accuracy_of(dense, data):
    """Train for a while, and give the share of test digits that are read correctly."""
    x_train, y_train, x_test, y_test = data
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.Input([64]), dense(64, "relu"), dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
    model.fit(x_train, y_train, epochs=15, batch_size=64, verbose=0)
    return model.evaluate(x_test, y_test, verbose=0)[1]


def digits():
    """The digits of scikit-learn, 1297 to train and 500 to test."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = (x[order] / 16).astype("float32"), y[order]
    return x[500:], y[500:], x[:500], y[:500]


if __name__ == "__main__":
    w = tf.constant([-0.8, 0.03, 0.31])
    with tf.GradientTape() as tape:
        tape.watch(w)
        levels = quantise(w)
    np.testing.assert_array_equal(tape.gradient(levels, w), [1.0, 1.0, 1.0])

    data = digits()
    floating = accuracy_of(keras.layers.Dense, data)
    quantised = accuracy_of(QuantisedDense, data)
    print(f"accuracy: float32 {floating:.3f}, {BITS} bits {quantised:.3f}")
    assert floating > 0.93, "the float model must have learnt"
    assert quantised > floating - 0.02, "within two points"
