"""A regression with a robust likelihood, special functions and sampled parameters."""

import tensorflow as tf
import tensorflow_probability as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
tf.random.set_seed(0)
x = tf.linspace(0.1, 2.0, 12)
y = 2.0 * x + tf.random.normal([12], seed=1)
slope, raw = tf.Variable(1.0), tf.Variable([0.5, 0.3, 0.4])
optimiser = tf.keras.optimizers.Adam(0.05)


def loss():
    """The likelihood under a Student's t, with penalties from special functions."""
    scale, df, shape = tf.unstack(tfb.Softplus()(raw) + 0.5)
    fit = -tf.reduce_sum(tfd.StudentT(df, slope * x, scale).log_prob(y))
    gamma = tfd.Gamma(shape, 1.0).sample(4, seed=(1, 2))
    circle = tfd.VonMises(0.3, scale).sample(4, seed=(3, 4))
    special = tfp.math.lbeta(shape, df) + tfp.math.log1psquare(scale) + tfp.math.lambertw(scale)
    bessel = tfp.math.bessel_iv_ratio(shape, df) + tfp.math.bessel_kve(shape, df)
    return fit + tf.reduce_sum(gamma) + tf.reduce_sum(circle) + special + bessel


for _step in range(2):
    with tf.GradientTape() as tape:
        value = loss()
    variables = [slope, raw]
    optimiser.apply_gradients(zip(tape.gradient(value, variables), variables))
