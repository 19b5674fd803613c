"""A network whose Lipschitz constant is one."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import deel.lip as lip
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
images, labels = tf.random.normal([8, 8, 8, 1]), tf.random.uniform([8, 3])
model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((8, 8, 1)),
        lip.layers.SpectralConv2D(4, 3, activation=lip.activations.GroupSort2()),
        lip.layers.ScaledL2NormPooling2D((2, 2)),
        lip.layers.ScaledGlobalL2NormPooling2D(),
        lip.layers.SpectralDense(3, activation=None),
    ]
)
model.compile("adam", "mse")
model.fit(images, labels, epochs=1, batch_size=4, verbose=0)
