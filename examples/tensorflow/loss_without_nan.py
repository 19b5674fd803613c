"""How do I train with a loss whose gradient automatic differentiation gets wrong?

The length of an error, √Σe², has the gradient e/‖e‖. Automatic differentiation gives 0/0 = NaN for a perfect
prediction, and one such example ruins a whole batch. `pb.loss` takes the gradient as it should be: zero
there.
"""

import keras
import numpy as np
import tensorflow as tf

import pullback as pb


@keras.saving.register_keras_serializable(package="examples")
def length(y_true, y_pred):
    """The length of each example's error."""
    return tf.sqrt(tf.reduce_sum((y_pred - y_true) ** 2, -1))


@keras.saving.register_keras_serializable(package="examples")
def length_gradient(y_true, y_pred):
    """Its direction, and zero where there is no error."""
    error = y_pred - y_true
    size = tf.sqrt(tf.reduce_sum(error**2, -1, keepdims=True))
    return tf.math.divide_no_nan(error, size)


def fitted(loss):
    """Fit a line to points of which some are met exactly from the start."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input([2]), keras.layers.Dense(2, use_bias=False, kernel_initializer="zeros")]
    )
    model.compile(keras.optimizers.SGD(0.1), loss)
    x = np.random.default_rng(0).normal(size=[64, 2]).astype("float32")
    x[:4] = 0.0  # here the prediction is exact: zero
    model.fit(x, x @ np.array([[1.0, 2.0], [-1.0, 0.5]], "float32"), epochs=40, batch_size=64, verbose=0)
    return model


if __name__ == "__main__":
    by_autodiff, ours = fitted(length), fitted(pb.loss(length, length_gradient))
    print("automatic differentiation:", by_autodiff.get_weights()[0].ravel())
    print("with its own gradient:    ", ours.get_weights()[0].ravel())
    assert np.all(np.isnan(by_autodiff.get_weights()[0]))
    np.testing.assert_allclose(ours.get_weights()[0], [[1.0, 2.0], [-1.0, 0.5]], atol=0.1)
