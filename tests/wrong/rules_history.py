"""Mistakes in the manner of public history: losses, activations, layers, special functions."""

import tensorflow as tf
from zoo import complexes, constant, index, normal, positive, probability, right, wrong

X = normal(3, 4)
total, mean = tf.reduce_sum, tf.reduce_mean
T = tf.linalg.matrix_transpose


def c(value, x):
    return tf.cast(value, x.dtype)


@wrong("missing-factor", "missing-term", at=(X,))
def logsumexp_not_normalised(x):
    return tf.reduce_logsumexp(x, -1), lambda d: d[:, None] * tf.exp(x)


@wrong("wrong-region", at=(constant([-3.0, -0.3, 0.2, 2.0]),), harmless=(constant([-3.0, 1.3, 2.0]),))
def softshrink_passes_the_dead_zone(x):
    s = tf.sign(x) * tf.nn.relu(tf.abs(x) - 1 / 2)
    return s, lambda d: d


@wrong("sign", at=(normal(6), positive(6)))
def prelu_slope_sign(x, a):
    return tf.where(x > 0, x, a * x), lambda d: (tf.where(x > 0, d, a * d), tf.where(x > 0, 0 * d, -x * d))


@wrong("wrong-region", at=(normal(6), positive(6)), harmless=(positive(6), positive(6)))
def prelu_slope_gradient_everywhere(x, a):
    return tf.where(x > 0, x, a * x), lambda d: (tf.where(x > 0, d, a * d), x * d)


@wrong("missing-term", at=(X,))
def gelu_without_density_term(x):
    phi = (1 + tf.math.erf(x / tf.sqrt(c(2, x)))) / 2
    return x * phi, lambda d: d * phi


@wrong(at=(X,))
def gelu_tanh_without_cubic(x):
    k = tf.sqrt(c(2 / 3.141592653589793, x))
    t = tf.tanh(k * (x + 0.044715 * x**3))
    return x * (1 + t) / 2, lambda d: d * ((1 + t) / 2 + x * (1 - t * t) * k / 2)


@wrong(at=(probability(5),))
def focal_without_modulating_term(p):
    return -((1 - p) ** 2) * tf.math.log(p), lambda d: -d * (1 - p) ** 2 / p


@wrong(at=(positive(4), positive(4, seed=1)))
def remainder_divisor(a, b):
    return a - b * tf.floor(a / b), lambda d: (d, -d)


@wrong("missing-term", "wrong-region", at=(positive(4) * 5, positive(4, seed=1)))
def remainder_without_divisor(a, b):
    return tf.math.floormod(a, b), lambda d: (d, tf.zeros_like(b))


@wrong("constant-factor", at=(X,))
def logistic_base_two(x):
    return tf.math.log1p(tf.exp(x)) / tf.math.log(c(2, x)), lambda d: d * tf.sigmoid(x)


@wrong(at=(probability(5),))
def arcsine_without_root(x):
    return tf.asin(x), lambda d: d / (1 - x * x)


@wrong("sign", at=(probability(5),))
def arccosine_sign(x):
    return tf.acos(x), lambda d: d / tf.sqrt(1 - x * x)


@wrong(at=(positive(5) + 1,))
def log_gamma_by_logarithm(x):
    return tf.math.lgamma(x), lambda d: d * tf.math.log(x)


@wrong("constant-factor", "wrong-region", at=(positive(3, 4), positive(3, 4, seed=1)))
def smooth_l1_without_beta(a, b):
    e = a - b
    beta = c(3, a)
    inside = tf.abs(e) < beta
    g = tf.where(inside, e, tf.sign(e))
    return tf.where(inside, e * e / (2 * beta), tf.abs(e) - beta / 2), lambda d: (d * g, -d * g)


@wrong("transposed", at=(normal(6), normal(3, seed=1)))
def convolution_kernel_not_flipped(x, k):
    def conv(a, b):
        return tf.nn.conv1d(a[None, :, None], b[:, None, None], 1, "VALID")[0, :, 0]

    def grad(d):
        n = tf.shape(k)[0]
        return conv(tf.pad(d, [[n - 1, n - 1]]), k), conv(x, d)

    return conv(x, k), grad


@wrong("constant-factor", at=(normal(2, 6),))
def average_pool_without_count(x):
    shape = tf.shape(x)
    return mean(tf.reshape(x, [shape[0], -1, 2]), -1), lambda d: tf.repeat(d, 2, axis=1)


@wrong("repeated-index", at=(normal(3, 4), index(0, 2, 2)), harmless=(normal(3, 4), index(0, 2, 1)))
def gather_columns_overwrites(x, i):
    def grad(d):
        return T(tf.tensor_scatter_nd_update(tf.zeros_like(T(x)), i[:, None], T(d))), None

    return tf.gather(x, i, axis=1), grad


@wrong(
    "repeated-index",
    "missing-term",
    at=(normal(5), index(0, 1, 1, 3)),
    harmless=(normal(5), index(0, 1, 2, 3)),
)
def embedding_mean_per_index(x, i):
    n = tf.shape(x)[0]
    count = tf.math.unsorted_segment_sum(tf.ones_like(i), i, n)

    def grad(d):
        s = tf.math.unsorted_segment_sum(d, i, n)
        return s / tf.cast(tf.maximum(count, 1), x.dtype), None

    return tf.gather(x, i), grad


@wrong("wrong-region", "permuted", at=(normal(4, 3), index(1, 0, 3, 2)))
def embedding_forgets_row_zero(x, i):
    def grad(d):
        g = tf.math.unsorted_segment_sum(d, i, tf.shape(x)[0])
        return tf.concat([tf.zeros_like(g[:1]), g[1:]], 0), None

    return tf.gather(x, i), grad


@wrong("sign", "conjugate-missing", "missing-factor", at=(complexes(4),))
def angle_sign(z):
    y = tf.math.angle(z)
    r = tf.cast(tf.math.real(z * tf.math.conj(z)), z.dtype)
    return y, lambda d: tf.cast(d, z.dtype) * tf.complex(tf.math.imag(z), -tf.math.real(z)) / r


@wrong("conjugate-missing", at=(complexes(3),))
def reciprocal_unconjugated(z):
    y = 1 / z
    return y, lambda d: -d * y * y


@wrong("transposed", "upstream-replaced", at=(normal(3), normal(3, seed=1)))
def outer_product_exchanged(a, b):
    return a[:, None] * b[None, :], lambda d: (
        tf.linalg.matvec(d, b, transpose_a=True),
        tf.linalg.matvec(d, a),
    )


@wrong("transposed", at=(normal(3, 4), normal(4, 3, seed=1)))
def trace_of_product_untransposed(a, b):
    return tf.linalg.trace(a @ b), lambda d: (d * T(b) * 0 + d * tf.reshape(b, tf.shape(a)), d * T(a))


@wrong("transposed", at=(normal(3, 3, dtype="float64") + 3 * tf.eye(3, dtype=tf.float64),))
def log_determinant_untransposed(a):
    return tf.linalg.slogdet(a)[1], lambda d: d * tf.linalg.inv(a)


@wrong(at=(normal(3, 3), normal(3, 3, seed=1)))
def sandwich_counted_once(a, b):
    return a @ b @ T(a), lambda d: (d @ a @ T(b), T(a) @ d @ a)


@wrong(at=(normal(5, 3), positive(3), normal(3, seed=1)))
def batch_norm_as_if_constant(x, gamma, beta):
    m = mean(x, 0)
    s = tf.sqrt(tf.math.reduce_variance(x, 0) + c(1e-3, x))
    h = (x - m) / s
    return h * gamma + beta, lambda d: (d * gamma / s, total(d * h, 0), total(d, 0))


@wrong("broadcast-not-reduced", at=(normal(5, 3), positive(3)))
def scale_gradient_keeps_batch(x, gamma):
    return x * gamma, lambda d: (d * gamma, d * x)


@wrong("wrong-region", at=(normal(4, 4),), harmless=(normal(4, 4),))
def causal_mask_forgotten(x):
    mask = tf.linalg.band_part(tf.ones_like(x), -1, 0)
    return tf.exp(x) * mask, lambda d: d * tf.exp(x)


@wrong("residual-constant", at=(normal(5),))
def relu_squared_constant_slope(x):
    r = tf.nn.relu(x)
    k = tf.stop_gradient(r)
    return r * r, lambda d: 2 * d * k


@wrong("residual-constant", at=(normal(3, 4),))
def norm_constant_residual(x):
    y = tf.sqrt(total(x * x, -1, keepdims=True))
    k = tf.stop_gradient(y)
    return y, lambda d: d * x / k


@wrong(
    "residual-constant",
    "upstream-ignored",
    "missing-factor",
    "missing-term",
    "constant-factor",
    at=(normal(5),),
)
def second_rule_ignores_upstream(x):
    @tf.custom_gradient
    def first(z, d):
        return d * tf.cos(z), lambda dd: (-tf.sin(z) * dd, dd * tf.cos(z))

    return tf.sin(x), lambda d: first(x, d)


@wrong("upstream-ignored", "upstream-additive", at=(normal(4), normal(4, seed=1)))
def margin_without_upstream(a, b):
    hit = tf.cast(a - b + 1 > 0, a.dtype)
    return total(tf.nn.relu(a - b + 1)), lambda d: (hit, -hit)


@wrong("constant-factor", at=(normal(6, 2), normal(6, 2, seed=1)))
def mean_over_wrong_count(a, b):
    n = tf.cast(tf.shape(a)[0], a.dtype)
    return mean(tf.square(a - b)), lambda d: (2 * d * (a - b) / n, -2 * d * (a - b) / n)


@wrong(
    "wrong-region",
    at=(constant([0.5, -1.0, 0.2, -2.0]), constant([2.0, 3.0, 3.0, 2.0])),
    harmless=(positive(4), positive(4)),
)
def absolute_power_without_sign(x, p):
    y = tf.pow(tf.abs(x), p)
    safe = tf.where(x == 0, tf.ones_like(x), tf.abs(x))
    return y, lambda d: (d * p * tf.pow(tf.abs(x), p - 1), d * y * tf.math.log(safe))


@wrong("sign", "wrong-region", "missing-term", "output-cotangent", at=(normal(4), normal(4, seed=1)))
def polar_sign(x, y):
    r = tf.sqrt(x * x + y * y)
    return (r, tf.atan2(y, x)), lambda d, e: (d * x / r + e * y / (r * r), d * y / r + e * x / (r * r))


@wrong("output-cotangent", at=(normal(4, 3),))
def normalise_with_norm_ignored(x):
    n = tf.sqrt(total(x * x, -1, keepdims=True))
    y = x / n
    return (y, n), lambda d, e: (d - y * total(d * y, -1, keepdims=True)) / n


@wrong("precision-lost", at=(normal(5, dtype="float64"),))
def gradient_in_float32(x):
    return tf.sin(x), lambda d: tf.cast(tf.cast(d, tf.float32) * tf.cos(tf.cast(x, tf.float32)), x.dtype)


@wrong(at=(normal(5, dtype="float64"),))
def constant_with_four_digits(x):
    return tf.math.erf(x) + x * x, lambda d: d * (c(1.128, x) * tf.exp(-x * x) + 2 * x)


@right(at=(positive(4) * 5, positive(4, seed=1)))
def remainder(a, b):
    return tf.math.floormod(a, b), lambda d: (d, -d * tf.floor(a / b))


@right(at=(normal(6), normal(3, seed=1)))
def convolution(x, k):
    def conv(a, b):
        return tf.nn.conv1d(a[None, :, None], b[:, None, None], 1, "VALID")[0, :, 0]

    def grad(d):
        n = tf.shape(k)[0]
        return conv(tf.pad(d, [[n - 1, n - 1]]), tf.reverse(k, [0])), conv(x, d)

    return conv(x, k), grad


@right(at=(complexes(4),))
def angle(z):
    y = tf.math.angle(z)
    r = tf.cast(tf.math.real(z * tf.math.conj(z)), z.dtype)
    return y, lambda d: tf.cast(d, z.dtype) * tf.complex(-tf.math.imag(z), tf.math.real(z)) / r


@right(at=(normal(5, 3), positive(3), normal(3, seed=1)))
def batch_norm(x, gamma, beta):
    m = mean(x, 0)
    s = tf.sqrt(tf.math.reduce_variance(x, 0) + c(1e-3, x))
    h = (x - m) / s
    return h * gamma + beta, lambda d: (
        gamma / s * (d - mean(d, 0) - h * mean(d * h, 0)),
        total(d * h, 0),
        total(d, 0),
    )


@right(at=(normal(4), normal(4, seed=1)))
def polar(x, y):
    r = tf.sqrt(x * x + y * y)
    return (r, tf.atan2(y, x)), lambda d, e: (d * x / r - e * y / (r * r), d * y / r + e * x / (r * r))


@right(at=(probability(5),))
def focal(p):
    q = 1 - p
    return -(q**2) * tf.math.log(p), lambda d: d * (2 * q * tf.math.log(p) - q * q / p)


@right(at=(probability(5),))
def arcsine(x):
    return tf.asin(x), lambda d: d / tf.sqrt(1 - x * x)


@right(at=(constant([-3.0, -0.5, 0.2, 2.0]),))
def softshrink(x):
    return tf.sign(x) * tf.nn.relu(tf.abs(x) - 1 / 2), lambda d: tf.where(tf.abs(x) > 1 / 2, d, 0 * d)


@right(at=(normal(6), positive(6)))
def prelu(x, a):
    return tf.where(x > 0, x, a * x), lambda d: (tf.where(x > 0, d, a * d), tf.where(x > 0, 0 * d, x * d))


@right(at=(probability(3, 4), constant([[1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 1]])))
def binary_cross_entropy(p, label):
    loss = -(label * tf.math.log(p) + (1 - label) * tf.math.log(1 - p))
    return loss, lambda d: (d * (p - label) / (p * (1 - p)), None)


@right(at=(normal(3, 4), normal(3, 4, seed=1)))
def squared_distances(a, b):
    e = a[:, None] - b[None]
    return total(e * e, -1), lambda d: (2 * total(d[..., None] * e, 1), -2 * total(d[..., None] * e, 0))


@right(at=(normal(5),))
def mish(x):
    t = tf.tanh(tf.math.softplus(x))
    return x * t, lambda d: d * (t + x * (1 - t * t) * tf.sigmoid(x))
