"""A training step in `tf.function`, with a stable loss and clipped gradients."""

import tensorflow as tf


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@tf.custom_gradient
def norm(x):
    length = tf.sqrt(tf.reduce_sum(x * x, -1, keepdims=True))

    def grad(dy):
        return dy * x / length

    return length, grad


tf.random.set_seed(0)
weights = tf.Variable(tf.random.normal([16, 8]))
features = tf.random.normal([256, 16])


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(log1pexp(-norm(features @ weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for _ in range(300):
    loss = step()
print(f"loss {float(loss):.3f}")
