"""Which pixels matter, by guided back-propagation."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
from tf_keras_vis.saliency import Saliency
from tf_keras_vis.utils.model_modifiers import GuidedBackpropagation, ReplaceToLinear
from tf_keras_vis.utils.scores import CategoricalScore

tf.random.set_seed(0)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(4, 3, activation="relu", input_shape=(8, 8, 1)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(3, activation="softmax"),
    ]
)
saliency = Saliency(model, model_modifier=[ReplaceToLinear(), GuidedBackpropagation()], clone=True)
print(saliency(CategoricalScore([1]), tf.random.normal([1, 8, 8, 1])).shape)
