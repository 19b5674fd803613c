"""A Keras layer with a wrong rule, checked on the backend that the environment names."""

import os

import keras
import numpy as np

import pullback as pb
import pullback.checker

if os.environ["KERAS_BACKEND"] == "jax":
    import jax.numpy as jnp

    tensor = jnp.asarray
else:
    import torch

    tensor = torch.as_tensor


@pb.custom_gradient
def scale(x, w):
    return x * w, lambda dy: (dy * w, 2 * (dy * x))


class Scale(keras.layers.Layer):
    def build(self, shape):
        self.w = self.add_weight(shape=shape, initializer="ones", name="scale")

    def call(self, x):
        return scale(x, keras.ops.convert_to_tensor(self.w))


layer = Scale()
report = pb.check(layer, tensor(np.array([[0.5, -1.0, 2.0]], "float32")), seed=1, xla=False, export=False)
left = keras.ops.convert_to_numpy(layer.trainable_variables[0]).tolist()
print(report.causes, "/scale" in report.failures[0].sentence, left)
exec(report.failures[0].reproducer, {"f": layer, "keras": keras, "print": lambda found: None})
