"""How do I train with a loss that has its own gradient?

The loss reports the squared error, which people read easily, and trains by the gradient of Huber's loss,
which outliers cannot drag away. `fit` and a hand-written loop come to the same weights.
"""

import keras
import numpy as np
import tensorflow as tf

import pullback as pb

WIDTH = 1.0  # errors beyond this are outliers


def huber(y_true, y_pred):
    """The loss whose derivative is used."""
    error = tf.abs(y_pred - y_true)
    inside = error**2
    outside = 2 * WIDTH * error - WIDTH**2
    return tf.reduce_mean(tf.where(error < WIDTH, inside, outside), axis=-1)


@pb.custom_gradient(like=huber)
def squared_error(y_true, y_pred):
    """The squared error, one value per example."""
    error = y_pred - y_true
    width = tf.cast(tf.shape(error)[-1], error.dtype)

    def grad(dy):
        slope = dy[..., None] * 2 * tf.clip_by_value(error, -WIDTH, WIDTH) / width
        return -slope, slope

    return tf.reduce_mean(error**2, axis=-1), grad


def linear_model():
    """A line, started at zero."""
    return keras.Sequential([keras.layers.Input([1]), keras.layers.Dense(1, kernel_initializer="zeros")])


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, [64, 1]).astype("float32")
    y = 3 * x + 1
    y[:4] = 40.0  # outliers

    fitted = linear_model()
    fitted.compile(optimizer=keras.optimizers.SGD(0.3), loss=squared_error)
    fitted.fit(x, y, batch_size=64, epochs=60, shuffle=False, verbose=0)

    looped = linear_model()
    optimizer = keras.optimizers.SGD(0.3)
    for _ in range(60):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(squared_error(y, looped(x)))
        weights = looped.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    for a, b in zip(fitted.get_weights(), looped.get_weights()):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    slope, offset = (float(w.squeeze()) for w in fitted.get_weights())
    print(f"fit and loop agree: y = {slope:.2f}·x + {offset:.2f} (true: 3·x + 1, four outliers)")

    least_slope, least_offset = np.linalg.lstsq(np.hstack([x, np.ones_like(x)]), y, rcond=None)[0].ravel()
    assert abs(offset - 1) < 0.2 < 1 < abs(least_offset - 1), "the outliers must not have ruled"
    print(f"least squares would give: y = {least_slope:.2f}·x + {least_offset:.2f}")
