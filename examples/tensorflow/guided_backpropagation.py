"""How do I see what a convolutional network looks at?

Guided backpropagation: every ReLU passes on only what is positive in both directions. `pb.override` replaces
their gradient and leaves the model alone. The pictures go to the folder given as argument, or a new one.
"""

import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import pullback as pb


def guided(dy, x):
    """Pass on what is positive in both directions."""
    return tf.where((x > 0) & (dy > 0), dy, 0.0)


def small_net():
    """A convolutional network that has learnt the digits."""
    keras.utils.set_random_seed(1)
    conv = keras.layers.Conv2D
    layers = [conv(16, 3, activation="relu"), conv(32, 3, activation="relu"), keras.layers.Flatten()]
    model = keras.Sequential([keras.Input([8, 8, 1]), *layers, keras.layers.Dense(10)])
    x, y = load_digits(return_X_y=True)
    images = (x / 16).reshape(-1, 8, 8, 1).astype("float32")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    model.fit(images, y, epochs=6, batch_size=64, verbose=0)
    return model, images, y


def saliency(function, images, labels):
    """The gradient of each image's class with respect to the image."""
    images = tf.constant(images)
    with tf.GradientTape() as tape:
        tape.watch(images)
        scores = tf.gather(function(images), labels, batch_dims=1)
    return tape.gradient(scores, images)


def save(picture, path):
    """Write a picture, stretched to black and white, eight times as large."""
    low, high = tf.reduce_min(picture), tf.reduce_max(picture)
    grey = tf.cast(255 * (picture - low) / (high - low + 1e-9), tf.uint8)
    tf.io.write_file(str(path), tf.io.encode_png(tf.image.resize(grey, [64, 64], "nearest")))


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    model, images, labels = small_net()
    clear = pb.override(model, {tf.nn.relu: guided})
    np.testing.assert_allclose(clear(images[:8]), model(images[:8]), rtol=1e-4, atol=1e-4)

    plain, looked = saliency(model, images[:8], labels[:8]), saliency(clear, images[:8], labels[:8])
    assert clear.replaced == {"relu": 2}
    for i in range(8):
        for name, picture in (("image", images[i]), ("gradient", plain[i]), ("guided", looked[i])):
            save(picture, folder / f"{i}_{name}.png")
    ink = images[:8] > 0.2
    shares = [float(np.sum(np.abs(s)[ink]) / np.sum(np.abs(s))) for s in (plain, looked)]
    print(f"pictures in {folder.name}; on the ink: gradient {shares[0]:.2f}, guided {shares[1]:.2f}")
    assert len(list(folder.glob("*_guided.png"))) == 8
    assert shares[1] > shares[0] + 0.1, "the guided gradient keeps to what was drawn"
