"""Rules of reductions, norms and normalisations: factors, terms, broadcasts."""

import tensorflow as tf
from zoo import constant, normal, positive, right, wrong

X = normal(3, 4)
total, mean = tf.reduce_sum, tf.reduce_mean


def size(x):
    return tf.cast(tf.size(x), x.dtype)


@wrong("constant-factor", at=(X,))
def mean_without_division(x):
    return mean(x), lambda d: d * tf.ones_like(x)


@wrong("constant-factor", at=(X,))
def mean_divided_by_rows(x):
    return mean(tf.exp(x)), lambda d: d * tf.exp(x) / tf.cast(tf.shape(x)[0], x.dtype)


@wrong("constant-factor", at=(X,))
def square_without_two(x):
    return x * x, lambda d: d * x


@wrong("constant-factor", at=(X,))
def log_two_forgotten(x):
    return 2**x, lambda d: d * 2**x


@wrong("constant-factor", at=(X,))
def error_function_constant(x):
    return tf.math.erf(x), lambda d: d * tf.exp(-x * x)


@wrong("constant-factor", at=(X,))
def variance_biased(x):
    n = tf.cast(tf.shape(x)[-1], x.dtype)
    c = x - mean(x, -1, keepdims=True)
    return total(c * c, -1) / (n - 1), lambda d: d[:, None] * 2 * c / n


@wrong("constant-factor", at=(X, normal(4, 5, seed=1)))
def scaled_dot_forgets_root(a, b):
    r = tf.sqrt(tf.cast(tf.shape(a)[1], a.dtype))
    return a @ b / r, lambda d: (d @ tf.transpose(b), tf.transpose(a) @ d)


@wrong("missing-term", at=(X,))
def softmax_diagonal_only(x):
    y = tf.nn.softmax(x)
    return y, lambda d: d * y * (1 - y)


@wrong("missing-term", at=(X,))
def softmax_without_sum(x):
    y = tf.nn.softmax(x)
    return y, lambda d: d * y


@wrong("missing-term", "upstream-replaced", at=(X,))
def log_softmax_without_sum(x):
    y = tf.nn.log_softmax(x)
    return y, lambda d: d - tf.exp(y) * d


@wrong("missing-term", at=(X,))
def normalise_without_projection(x):
    n = tf.sqrt(total(x * x, -1, keepdims=True))
    return x / n, lambda d: d / n


@wrong("missing-term", at=(X,))
def centre_passes_upstream(x):
    return x - mean(x, -1, keepdims=True), lambda d: d


def standardised(x):
    c = x - mean(x, -1, keepdims=True)
    s = tf.sqrt(mean(c * c, -1, keepdims=True) + 1e-3)
    return c / s, s


@wrong("missing-term", at=(X,))
def layer_norm_without_variance_term(x):
    y, s = standardised(x)
    return y, lambda d: (d - mean(d, -1, keepdims=True)) / s


@wrong("missing-term", at=(X,))
def layer_norm_without_mean_term(x):
    y, s = standardised(x)
    return y, lambda d: (d - y * mean(d * y, -1, keepdims=True)) / s


@wrong("missing-term", at=(X,))
def product_rule_half(x):
    return x * tf.sin(x), lambda d: d * tf.sin(x)


@wrong("missing-term", at=(X,))
def swish_without_second_term(x):
    return x * tf.sigmoid(x), lambda d: d * tf.sigmoid(x)


@wrong("broadcast-not-reduced", at=(X, normal(4, seed=1)))
def bias_not_summed(x, b):
    return x + b, lambda d: (d, d)


@wrong("broadcast-not-reduced", at=(X, normal(3, 1, seed=1)))
def column_scale_not_summed(x, c):
    return x * c, lambda d: (d * c, d * x)


@wrong("broadcast-not-reduced", at=(X, constant(0.7)))
def scalar_scale_not_summed(x, c):
    return x * c, lambda d: (d * c, d * x)


@wrong("broadcast-not-reduced", at=(X, normal(4, seed=1)))
def bias_gets_first_row(x, b):
    return x + b, lambda d: (d, d[0])


@wrong("constant-factor", at=(X, normal(4, seed=1)))
def bias_averaged(x, b):
    return x + b, lambda d: (d, mean(d, 0))


@wrong("wrong-shape", at=(X,))
def row_sum_not_broadcast(x):
    return total(x, 1, keepdims=True), lambda d: d


@wrong("missing-factor", at=(X,))
def norm_not_divided(x):
    y = tf.sqrt(total(x * x))
    return y, lambda d: d * x


@wrong("sign", "wrong-region", "missing-term", at=(positive(3, 4), positive(3, 4, seed=1)))
def divergence_sign(p, q):
    return total(p * tf.math.log(p / q)), lambda d: (d * (tf.math.log(p / q) + 1), d * p / q)


@wrong("missing-term", at=(positive(3, 4), positive(3, 4, seed=1)))
def divergence_without_one(p, q):
    return total(p * tf.math.log(p / q)), lambda d: (d * tf.math.log(p / q), -d * p / q)


@wrong("missing-term", at=(normal(4, 3), normal(4, 3, seed=1)))
def cosine_without_projection(a, b):
    na, nb = tf.norm(a), tf.norm(b)
    return total(a * b) / (na * nb), lambda d: (d * b / (na * nb), d * a / (na * nb))


@right(at=(X,))
def mean_of_exponential(x):
    return mean(tf.exp(x)), lambda d: d * tf.exp(x) / size(x)


@right(at=(X,))
def softmax(x):
    y = tf.nn.softmax(x)
    return y, lambda d: y * (d - total(d * y, -1, keepdims=True))


@right(at=(X,))
def log_softmax(x):
    y = tf.nn.log_softmax(x)
    return y, lambda d: d - tf.exp(y) * total(d, -1, keepdims=True)


@right(at=(X,))
def logsumexp(x):
    y = tf.reduce_logsumexp(x, -1)
    return y, lambda d: d[:, None] * tf.exp(x - y[:, None])


@right(at=(X,))
def layer_norm(x):
    y, s = standardised(x)
    return y, lambda d: (d - mean(d, -1, keepdims=True) - y * mean(d * y, -1, keepdims=True)) / s


@right(at=(X,))
def normalise(x):
    n = tf.sqrt(total(x * x, -1, keepdims=True))
    y = x / n
    return y, lambda d: (d - y * total(d * y, -1, keepdims=True)) / n


@right(at=(X, normal(4, seed=1)))
def bias_add(x, b):
    return x + b, lambda d: (d, total(d, 0))


@right(at=(X,))
def euclidean_norm(x):
    y = tf.sqrt(total(x * x))
    return y, lambda d: d * x / y


@right(at=(X,))
def euclidean_norm_safe(x):
    y = tf.sqrt(total(x * x))
    return y, lambda d: tf.math.divide_no_nan(d * x, y)


@right(at=(X, constant([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])))
def cross_entropy(logits, labels):
    loss = -total(labels * tf.nn.log_softmax(logits), -1)
    return loss, lambda d: (d[:, None] * (tf.nn.softmax(logits) - labels), None)


@right(at=(X, index := tf.constant([1, 0, 3])))
def sparse_cross_entropy(logits, labels):
    one = tf.one_hot(labels, tf.shape(logits)[-1], dtype=logits.dtype)
    loss = -total(one * tf.nn.log_softmax(logits), -1)
    return loss, lambda d: (d[:, None] * (tf.nn.softmax(logits) - one), None)


@right(at=(X,))
def standard_deviation(x):
    s = tf.math.reduce_std(x, -1, keepdims=True)
    return s[
        :, 0
    ], lambda d: d[:, None] * (x - mean(x, -1, keepdims=True)) / (s * tf.cast(tf.shape(x)[-1], x.dtype))


@right(at=(X,))
def gelu(x):
    phi = (1 + tf.math.erf(x / tf.sqrt(tf.cast(2, x.dtype)))) / 2
    return (
        x * phi,
        lambda d: d * (phi + x * tf.exp(-x * x / 2) / tf.sqrt(tf.cast(2 * 3.141592653589793, x.dtype))),
    )


@right(at=(X,))
def swish(x):
    s = tf.sigmoid(x)
    return x * s, lambda d: d * s * (1 + x * (1 - s))


@right(at=(X + 1e4,))
def cancelling_difference(x):
    return (x + 1e4) - 1e4, lambda d: d


@right(at=(normal(1000),))
def sum_of_many(x):
    return total(tf.sin(x)), lambda d: d * tf.cos(x)


@right(at=(1e-6 * normal(5),))
def expm1_of_small(x):
    return tf.math.expm1(x), lambda d: d * tf.exp(x)


@right(at=(normal(4, 3), normal(4, 3, seed=1)))
def cosine(a, b):
    na, nb = tf.norm(a), tf.norm(b)
    y = total(a * b) / (na * nb)
    return y, lambda d: (d * (b / (na * nb) - y * a / (na * na)), d * (a / (na * nb) - y * b / (nb * nb)))
