"""A recurrent embedding with gradients that are scaled and clipped."""

import sonnet as snt
import tensorflow as tf
from sonnet.src.leaky_clip_by_value import leaky_clip_by_value

tf.random.set_seed(0)
tokens, labels = tf.random.uniform([4, 6], 0, 9, tf.int32), tf.random.uniform([4, 2])
embed, head = snt.Embed(vocab_size=9, embed_dim=5, densify_gradients=True), snt.Linear(2)
optimiser = snt.optimizers.Adam(1e-2)
for _step in range(2):
    with tf.GradientTape() as tape:
        hidden = tf.reduce_mean(embed(tokens), 1)
        out = leaky_clip_by_value(head(snt.scale_gradient(hidden, 0.5)), -0.3, 0.3)
        loss = tf.reduce_mean((out - labels) ** 2)
    variables = [*embed.trainable_variables, *head.trainable_variables]
    optimiser.apply(tape.gradient(loss, variables), variables)
