"""A spiking layer, trained with the rate in the backward pass."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import keras_spiking
import tensorflow as tf

tf.random.set_seed(0)
model = tf.keras.Sequential(
    [
        tf.keras.layers.InputLayer(input_shape=(5, 4)),
        tf.keras.layers.Dense(6),
        keras_spiking.SpikingActivation("relu", dt=0.1, spiking_aware_training=True, seed=0),
        keras_spiking.Lowpass(0.1, dt=0.1),
        tf.keras.layers.Dense(2),
    ]
)
model.compile("sgd", "mse")
model.fit(tf.random.uniform([4, 5, 4]), tf.random.uniform([4, 5, 2]), verbose=0)
