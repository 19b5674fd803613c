"""A network whose weights are clustered."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
import tensorflow_model_optimization as tfmot

tf.keras.utils.set_random_seed(0)
x, y = tf.random.normal([16, 6]), tf.random.normal([16, 2])
base = tf.keras.Sequential([tf.keras.layers.Input((6,)), tf.keras.layers.Dense(8), tf.keras.layers.Dense(2)])
clustering = tfmot.clustering.keras
model = clustering.cluster_weights(
    base,
    number_of_clusters=4,
    cluster_centroids_init=clustering.CentroidInitialization.LINEAR,
)
model.compile("adam", "mse")
model.fit(x, y, epochs=1, batch_size=8, verbose=0)
