"""Sensitivities of an option price by simulation."""

import tensorflow as tf
import tf_quant_finance as tff

mean, volatility = tf.constant(0.05, tf.float64), tf.constant(0.2, tf.float64)
with tf.GradientTape() as tape:
    tape.watch([mean, volatility])
    process = tff.models.GeometricBrownianMotion(mean, volatility, dtype=tf.float64)
    paths = process.sample_paths(
        times=[0.5, 1.0], initial_state=1.0, num_samples=50, random_type=tff.math.random.RandomType.STATELESS, seed=[4, 2]
    )
    price = tf.reduce_mean(tf.nn.relu(paths[:, -1, 0] - 1.0))
print(tape.gradient(price, [mean, volatility]))

with tf.GradientTape() as tape:
    tape.watch([mean, volatility])
    paths = tff.models.euler_sampling.sample(
        dim=1,
        drift_fn=lambda t, x: mean * x,
        volatility_fn=lambda t, x: volatility * x[..., None],
        times=tf.constant([0.5, 1.0], tf.float64),
        time_step=0.25,
        num_samples=20,
        initial_state=tf.constant([1.0], tf.float64),
        random_type=tff.math.random.RandomType.STATELESS,
        seed=[4, 2],
        dtype=tf.float64,
    )
    price = tf.reduce_mean(tf.nn.relu(paths[:, -1, 0] - 1.0))
print(tape.gradient(price, [mean, volatility]))
