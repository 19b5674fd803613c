"""Rules whose first derivative is right and whose second is not; and ones right to the second."""

import numpy as np
import tensorflow as tf
from zoo import complexes, normal, positive, right, wrong

CONSTANT = "residual-constant"
still = tf.stop_gradient


@wrong(CONSTANT, at=(normal(5),))
def sinh_constant_residual(x):
    c = still(tf.cosh(x))
    return tf.sinh(x), lambda d: d * c


@wrong(CONSTANT, at=(positive(5),))
def dawson_constant_residual(x):
    y = tf.math.special.dawsn(x)
    return y, lambda d: d * (1 - 2 * x * still(y))


@wrong(CONSTANT, at=(normal(5),))
def tanh_constant_output(x):
    y = still(tf.tanh(x))
    return tf.tanh(x), lambda d: d * (1 - y * y)


@wrong(CONSTANT, at=(normal(3, 4),))
def softmax_constant_output(x):
    y = tf.nn.softmax(x)
    k = still(y)
    return y, lambda d: k * (d - tf.reduce_sum(d * k, -1, keepdims=True))


@wrong(CONSTANT, at=(positive(5),))
def root_constant_output(x):
    y = tf.sqrt(x)
    return y, lambda d: d / (2 * still(y))


@wrong(CONSTANT, at=(normal(4), normal(4, seed=1)))
def product_constant_factors(a, b):
    p, q = still(a), still(b)
    return a * b, lambda d: (d * q, d * p)


@wrong(CONSTANT, at=(normal(4, 3), normal(3, 2, seed=1)))
def matmul_constant_left(a, b):
    k = still(a)
    return a @ b, lambda d: (d @ tf.transpose(b), tf.transpose(k) @ d)


@wrong(CONSTANT, at=(normal(5),))
def swish_half_constant(x):
    s = still(tf.sigmoid(x))
    return x * tf.sigmoid(x), lambda d: d * (s + x * s * (1 - s))


@wrong(CONSTANT, at=(normal(5),))
def residual_kept_as_numpy(x):
    k = np.cos(x.numpy()) if hasattr(x, "numpy") else tf.cos(x)
    return tf.sin(x), lambda d: d * k


@wrong(CONSTANT, "sign", "constant-factor", at=(normal(5),))
def inner_rule_with_wrong_second(x):
    @tf.custom_gradient
    def slope(z):
        return tf.cos(z), lambda d: d * tf.sin(z)

    return tf.sin(x), lambda d: d * slope(x)


@wrong(CONSTANT, "constant-factor", "sign", at=(normal(5),))
def inner_rule_with_lost_factor(x):
    @tf.custom_gradient
    def slope(z):
        return 3 * z * z, lambda d: d * 3 * z

    return x**3, lambda d: d * slope(x)


@wrong(CONSTANT, at=(complexes(3),))
def complex_square_constant_residual(z):
    k = still(z)
    return z * z, lambda d: d * 2 * tf.math.conj(k)


@right(at=(normal(5),))
def sinh(x):
    return tf.sinh(x), lambda d: d * tf.cosh(x)


@right(at=(positive(5),))
def root_of_output(x):
    y = tf.sqrt(x)
    return y, lambda d: d / (2 * y)


@right(at=(normal(3, 4),))
def softmax_through_output(x):
    y = tf.nn.softmax(x)

    def grad(d):
        return y * (d - tf.reduce_sum(d * y, -1, keepdims=True))

    return y, grad


@right(at=(normal(5),))
def cube_with_inner_rule(x):
    @tf.custom_gradient
    def slope(z):
        return 3 * z * z, lambda d: d * 6 * z

    return x**3, lambda d: d * slope(x)


@right(at=(normal(4), normal(4, seed=1)))
def product(a, b):
    return a * b, lambda d: (d * b, d * a)


@right(at=(normal(5),))
def step_constant_slope(x):
    return tf.nn.leaky_relu(
        x, 0.1
    ), lambda d: d * still(tf.where(x > 0, tf.ones_like(x), tf.ones_like(x) / 10))


@right(at=(normal(5, dtype="float64"),))
def log_cosh(x):
    return tf.math.softplus(2 * x) - x - tf.math.log(tf.constant(2, x.dtype)), lambda d: d * tf.tanh(x)


@right(at=(normal(5),), plain=True)
def plain_function(x):
    return tf.reduce_sum(tf.sin(x) * x, keepdims=True)


@right(at=({"a": normal(3), "b": [normal(2), 3, None]},), plain=True)
def nested_inputs(tree):
    return {"sum": tree["a"] * 2, "other": tf.exp(tree["b"][0]) * tree["b"][1]}


@right(at=(normal(2, 3), normal(2, 3, seed=1)), plain=True)
def keras_loss(target, output):
    return tf.keras.losses.MeanSquaredError()(target, output)
