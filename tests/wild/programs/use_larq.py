"""A binarised network, trained as its users do, with two more quantisers."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import larq
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
images, labels = tf.random.normal([16, 8, 8, 1]), tf.random.uniform([16], 0, 3, tf.int32)
options = {"kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip", "use_bias": False}
model = tf.keras.Sequential(
    [
        larq.layers.QuantConv2D(4, 3, input_shape=(8, 8, 1), **options),
        tf.keras.layers.BatchNormalization(scale=False),
        larq.layers.QuantConv2D(4, 3, input_quantizer="approx_sign", **options),
        tf.keras.layers.Flatten(),
        larq.layers.QuantDense(8, input_quantizer="swish_sign", kernel_quantizer="ste_tern"),
        larq.layers.QuantDense(
            3, input_quantizer="ste_heaviside", kernel_quantizer=larq.quantizers.DoReFa(2)
        ),
        tf.keras.layers.Activation("softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(images, labels, epochs=1, batch_size=8, verbose=0)
