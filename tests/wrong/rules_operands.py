"""Rules with partials exchanged, signs lost, or one value used for another."""

import tensorflow as tf
from zoo import normal, positive, probability, right, wrong

A, B = positive(3, 4), positive(3, 4, seed=1)


@wrong("inputs-swapped", "wrong-operand", at=(A, B), harmless=(A, A))
def hypot_swapped(a, b):
    y = tf.sqrt(a * a + b * b)
    return y, lambda d: (d * b / y, d * a / y)


@wrong("evaluated-at-output", at=(normal(5),))
def softsign_at_output(x):
    y = x / (1 + tf.abs(x))
    return y, lambda d: d / tf.square(1 + tf.abs(y))


@wrong("evaluated-at-output", at=(normal(5),))
def tanh_at_input(x):
    return tf.tanh(x), lambda d: d * (1 - x * x)


@wrong("evaluated-at-output", at=(normal(5),))
def sigmoid_at_input(x):
    return tf.sigmoid(x), lambda d: d * x * (1 - x)


@wrong("evaluated-at-output", at=(positive(5),))
def logarithm_at_output(x):
    y = tf.math.log(x)
    return y, lambda d: d / y


@wrong("sign", at=(A, B))
def subtraction_sign(a, b):
    return a - b, lambda d: (d, d)


@wrong("sign", at=(normal(4),))
def cosine_sign(x):
    return tf.cos(x), lambda d: d * tf.sin(x)


@wrong("sign", at=(A, B))
def quotient_sign(a, b):
    return a / b, lambda d: (d / b, d * a / (b * b))


@wrong("inputs-swapped", "wrong-operand", at=(A, B))
def quotient_exchanged_values(a, b):
    return a / b, lambda d: (d / b, -d * b / (a * a))


@wrong("wrong-operand", "inputs-swapped", at=(A, B))
def product_own_factor(a, b):
    return a * b, lambda d: (d * a, d * b)


@wrong("sign", "inputs-swapped", at=(normal(4), normal(4, seed=1)))
def arctangent_signs(y, x):
    r = x * x + y * y
    return tf.atan2(y, x), lambda d: (d * x / r, d * y / r)


@wrong(at=(A, B), harmless=(A, B))
def power_logarithm_of_exponent(a, b):
    y = tf.pow(a, b)
    return y, lambda d: (d * b * tf.pow(a, b - 1), d * y * tf.math.log(b))


@wrong("missing-term", at=(A, B))
def power_without_exponent_gradient(a, b):
    y = tf.pow(a, b)
    return y, lambda d: (d * b * tf.pow(a, b - 1), tf.zeros_like(b))


@wrong("constant-factor", at=(A, B))
def squared_difference_half(a, b):
    return tf.square(a - b), lambda d: (d * (a - b), -d * (a - b))


@wrong("wrong-region", at=(normal(8), normal(8, seed=1)), harmless=(normal(8), normal(8, seed=1)))
def maximum_exchanged(a, b):
    return tf.maximum(a, b), lambda d: (tf.where(a > b, d, 0 * d), tf.where(a > b, d, 0 * d))


@wrong("output-cotangent", at=(normal(4),))
def sincos_ignores_second(x):
    return (tf.sin(x), tf.cos(x)), lambda d, e: d * tf.cos(x)


@wrong("output-cotangent", at=(normal(4),))
def sincos_exchanged(x):
    return (tf.sin(x), tf.cos(x)), lambda d, e: e * tf.cos(x) - d * tf.sin(x)


@wrong("sign", "output-cotangent", "missing-term", at=(normal(4),))
def sincos_sign_of_second(x):
    return (tf.sin(x), tf.cos(x)), lambda d, e: d * tf.cos(x) + e * tf.sin(x)


@wrong("output-cotangent", at=(normal(3, 4),))
def moments_ignore_variance(x):
    m = tf.reduce_mean(x, -1)
    return (m, tf.math.reduce_variance(x, -1)), lambda d, e: tf.broadcast_to(
        d[:, None] / x.shape[-1], x.shape
    )


@right(at=(A, B))
def hypot(a, b):
    y = tf.sqrt(a * a + b * b)
    return y, lambda d: (d * a / y, d * b / y)


@right(at=(normal(5),))
def softsign(x):
    return x / (1 + tf.abs(x)), lambda d: d / tf.square(1 + tf.abs(x))


@right(at=(A, B))
def quotient(a, b):
    return a / b, lambda d: (d / b, -d * a / (b * b))


@right(at=(A, B))
def power(a, b):
    y = tf.pow(a, b)
    return y, lambda d: (d * b * tf.pow(a, b - 1), d * y * tf.math.log(a))


@right(at=(normal(4), normal(4, seed=1)))
def arctangent(y, x):
    r = x * x + y * y
    return tf.atan2(y, x), lambda d: (d * x / r, -d * y / r)


@right(at=(normal(8), normal(8, seed=1)))
def maximum(a, b):
    return tf.maximum(a, b), lambda d: (tf.where(a >= b, d, 0 * d), tf.where(a >= b, 0 * d, d))


@right(at=(normal(4),))
def sincos(x):
    return (tf.sin(x), tf.cos(x)), lambda d, e: d * tf.cos(x) - e * tf.sin(x)


@right(at=(probability(5),))
def logit(x):
    return tf.math.log(x) - tf.math.log(1 - x), lambda d: d / (x * (1 - x))


@right(at=(probability(5),))
def binary_entropy(p):
    return -(
        p * tf.math.log(p) + (1 - p) * tf.math.log(1 - p)
    ), lambda d: d * (tf.math.log(1 - p) - tf.math.log(p))


@right(at=(normal(3, 4), normal(3, 4, seed=1)))
def distance_none_for_target(x, target):
    return tf.reduce_mean(tf.square(x - target)), lambda d: (
        d * 2 * (x - target) / tf.cast(tf.size(x), x.dtype),
        None,
    )


@wrong("wrong-operand", "sign", at=(normal(5),))
def softplus_at_minus(x):
    return tf.math.softplus(x), lambda d: d * tf.sigmoid(-x)


@wrong("wrong-operand", "sign", at=(normal(5, seed=3),))
def logcosh_like_at_minus(x):
    return tf.exp(x) + x, lambda d: d * (tf.exp(-x) + 1)


@wrong("inputs-swapped", at=(A, B), harmless=(A, A))
def hypot_first_twice(a, b):
    y = tf.sqrt(a * a + b * b)
    return y, lambda d: (d * a / y, d * a / y)


@wrong("missing-term", at=(positive(5),))
def log1p_without_one(x):
    return tf.math.log1p(x), lambda d: d / x


@wrong("missing-term", at=(normal(5),))
def arctan_without_one(x):
    return tf.atan(x), lambda d: d / (x * x)


@right(at=(positive(5, dtype="float64"),))
def x_log_x_infinite_at_zero(x):
    """Its slope at zero grows without end: an infinite gradient there is no mistake."""
    return tf.math.xlogy(x, x), lambda d: d * (1 + tf.math.log(x))
