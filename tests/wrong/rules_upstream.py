"""Rules that mishandle the upstream gradient."""

import tensorflow as tf
from zoo import constant, normal, positive, right, wrong

total = tf.reduce_sum


@wrong("upstream-additive", at=(normal(3, 4),))
def tanh_without_brackets(x):
    y = tf.tanh(x)
    return y, lambda d: d * 1 - y * y


@wrong("upstream-ignored", at=(normal(5),))
def sine_without_upstream(x):
    return tf.sin(x), lambda d: tf.cos(x)


@wrong("upstream-ignored", at=(normal(4, 3),))
def loss_without_upstream(x):
    return total(tf.square(x)), lambda d: 2 * x


@wrong("upstream-ignored", at=(normal(4, 3), normal(4, 3, seed=1)))
def squared_error_ignores_upstream(a, b):
    return tf.reduce_mean(tf.square(a - b)), lambda d: (2 * (a - b) / 12, -2 * (a - b) / 12)


@wrong("upstream-nonlinear", at=(normal(5),))
def exponential_upstream_squared(x):
    y = tf.exp(x)
    return y, lambda d: d * d * y


@wrong("upstream-nonlinear", at=(normal(5),))
def softmax_divides_by_upstream(x):
    y = tf.nn.softmax(x)
    return y, lambda d: d * y * (1 - tf.reduce_sum(d * y) / d)


@wrong("upstream-nonlinear", at=(normal(6),))
def cube_with_clipped_upstream(x):
    return x**3, lambda d: tf.clip_by_value(d, -1.0, 1.0) * 3 * x**2


@wrong("upstream-nonlinear", at=(normal(6),))
def sine_with_sign_of_upstream(x):
    return tf.sin(x), lambda d: tf.sign(d) * tf.cos(x)


@wrong("upstream-additive", at=(normal(3, 3),))
def weight_decay_in_gradient(x):
    return tf.nn.softplus(x), lambda d: d * tf.sigmoid(x) + tf.cast(0.01, x.dtype) * x


@wrong("upstream-replaced", at=(normal(4, 3),))
def square_with_mean_upstream(x):
    return x * x, lambda d: tf.reduce_mean(d) * 2 * x


@wrong("upstream-replaced", at=(normal(4, 3),))
def row_sum_upstream(x):
    return tf.exp(x), lambda d: total(d, axis=1, keepdims=True) * tf.exp(x)


@wrong("upstream-ignored", "upstream-additive", at=(normal(3, 4), normal(3, 4, seed=1)))
def product_ignores_upstream_for_b(a, b):
    return a * b, lambda d: (d * b, a)


@wrong("surrogate", at=(normal(6),))
def undeclared_straight_through(x):
    return tf.round(x), lambda d: d


@wrong("surrogate", at=(normal(6),))
def undeclared_reversal(x):
    return tf.identity(x), lambda d: -d


@right(at=(normal(3, 4),))
def tanh(x):
    y = tf.tanh(x)
    return y, lambda d: d * (1 - y * y)


@right(at=(normal(5),))
def sine(x):
    return tf.sin(x), lambda d: d * tf.cos(x)


@right(at=(normal(4, 3),))
def sum_of_squares(x):
    return total(tf.square(x)), lambda d: d * 2 * x


@right(at=(constant(0.7),))
def scalar_cube(x):
    return x**3, lambda d: 3 * d * x * x


@right(at=(positive(4),))
def reciprocal(x):
    y = 1 / x
    return y, lambda d: -d * y * y


@right(at=(normal(6),))
def identity(x):
    return tf.identity(x), lambda d: d


@right(at=(normal(3),))
def constant_function(x):
    return tf.ones_like(x), lambda d: tf.zeros_like(d)
