"""Eager training of a model with an adversary: the gradient is turned round on the way."""

import tensorflow as tf

import pullback as pb


@pb.custom_gradient
def softsign(x):
    size = 1 + tf.abs(x)

    def grad(dy):
        return dy / size**2

    return x / size, grad


@pb.custom_gradient(differs="gradient reversal")
def turned(x):
    def grad(dy):
        return -dy

    return tf.identity(x), grad


tf.random.set_seed(0)
body, head, other = (tf.Variable(tf.random.normal(s) / 4) for s in ([10, 16], [16, 1], [16, 1]))
features = tf.random.normal([128, 10])
target, domain = features[:, :1], features[:, 1:2]
for _ in range(60):
    with tf.GradientTape() as tape:
        hidden = softsign(features @ body)
        loss = tf.reduce_mean((hidden @ head - target) ** 2)
        loss += tf.reduce_mean((turned(hidden) @ other - domain) ** 2)
    for variable, slope in zip((body, head, other), tape.gradient(loss, (body, head, other))):
        variable.assign_sub(0.05 * slope)
print(f"loss {float(loss):.3f}")
