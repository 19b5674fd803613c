"""How do I train a network of spiking neurons?

A spike is a step, whose derivative is zero almost everywhere. `pb.heaviside` has the step forward and a
smooth slope backward, so the leaky integrate-and-fire neurons below are trained like any other layer.
"""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import pullback as pb

STEPS = 8


class Spiking(keras.layers.Layer):
    """Neurons that gather current, leak, and fire when they reach the threshold."""

    def __init__(self, units, decay=0.8, **options):
        super().__init__(**options)
        self.current = keras.layers.Dense(units)
        self.units, self.decay = units, decay

    def call(self, x):
        current = self.current(x)
        potential = tf.zeros_like(current)
        count = tf.zeros_like(current)
        for _ in range(STEPS):
            potential = self.decay * potential + current
            spike = pb.heaviside(potential - 1.0, slope="fast_sigmoid", sharpness=4.0)
            potential -= spike  # a neuron that fired starts anew
            count += spike
        return count / STEPS


def digits():
    """The digits of scikit-learn, 1297 to train and 500 to test."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = (x[order] / 16).astype("float32"), y[order]
    return x[500:], y[500:], x[:500], y[:500]


if __name__ == "__main__":
    x_train, y_train, x_test, y_test = digits()
    keras.utils.set_random_seed(5)
    spiking = Spiking(64)
    model = keras.Sequential([keras.Input([64]), spiking, keras.layers.Dense(10)])
    rates = spiking(x_test)
    assert set(np.unique(np.round(rates * STEPS))) <= set(range(STEPS + 1)), "it counts whole spikes"

    before = spiking.get_weights()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
    model.fit(x_train, y_train, epochs=15, batch_size=64, verbose=0)
    accuracy = model.evaluate(x_test, y_test, verbose=0)[1]
    moved = max(np.max(np.abs(a - b)) for a, b in zip(before, spiking.get_weights()))
    print(f"accuracy {accuracy:.3f}; the spiking layer's weights moved by up to {moved:.2f}")
    assert accuracy > 0.93
    assert moved > 0.05, "the gradient came through the spikes"
