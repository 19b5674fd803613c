"""A monotonic model of two features, as a factored lattice."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
import tensorflow_lattice as tfl

tf.keras.utils.set_random_seed(0)
x = tf.random.uniform([16, 2])
y = x[:, :1] + 0.5 * x[:, 1:] ** 2
model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((2,)),
        tfl.layers.KroneckerFactoredLattice(lattice_sizes=2, num_terms=3, monotonicities=[1, 1]),
    ]
)
model.compile("adam", "mse")
model.fit(x, y, epochs=1, batch_size=8, verbose=0)
