"""More of the same manner: gates, norms, attention, scans, shapes."""

import tensorflow as tf
from zoo import complexes, constant, index, normal, positive, probability, right, wrong

X = normal(3, 4)
total, mean = tf.reduce_sum, tf.reduce_mean
T = tf.linalg.matrix_transpose
WIDE = constant([-5.0, -2.0, -0.5, 1.0, 2.5, 4.0])


@wrong("wrong-region", at=(WIDE,), harmless=(normal(4),))
def hard_swish_upper_bound(x):
    y = x * tf.clip_by_value(x + 3, 0, 6) / 6
    return y, lambda d: d * tf.where(x < -3, 0 * x, (2 * x + 3) / 6)


@wrong("output-cotangent", "inputs-swapped", "permuted", "wrong-region", at=(normal(3, 4),))
def gated_halves_exchanged(x):
    a, b = tf.split(x, 2, axis=-1)
    s = tf.sigmoid(b)
    return a * s, lambda d: tf.concat([d * a * s * (1 - s), d * s], -1)


@wrong("wrong-region", at=(normal(8),), harmless=(positive(8),))
def celu_without_alpha(x):
    return tf.where(x > 0, x, 2 * tf.math.expm1(x / 2)), lambda d: tf.where(x > 0, d, d * tf.exp(x / 2) / 2)


@wrong("inputs-swapped", at=(normal(5), normal(5, seed=1)))
def log_add_exp_weights(a, b):
    return tf.math.log(tf.exp(a) + tf.exp(b)), lambda d: (d * tf.sigmoid(b - a), d * tf.sigmoid(a - b))


@wrong("missing-factor", "evaluated-at-output", at=(positive(5),))
def reciprocal_root_power(x):
    y = tf.math.rsqrt(x)
    return y, lambda d: -d * y * y / 2


@wrong(at=(positive(5) + 1,))
def arsinh_wrong_sign_inside(x):
    return tf.asinh(x), lambda d: d / tf.sqrt(x * x - 1)


@wrong("wrong-region", "missing-term", at=(WIDE, constant(-1.0), constant(2.0)))
def clip_bounds_get_nothing(x, low, high):
    y = tf.minimum(tf.maximum(x, low), high)
    return y, lambda d: (tf.where((x > low) & (x < high), d, 0 * d), 0 * low, 0 * high)


@wrong(
    "repeated-index",
    at=(normal(3, 4), tf.constant([[0, 0], [1, 2], [3, 3]])),
    harmless=(normal(3, 4), tf.constant([[0, 1], [1, 2], [3, 0]])),
)
def take_along_axis_overwrites(x, i):
    rows = tf.repeat(tf.range(tf.shape(x)[0])[:, None], tf.shape(i)[1], 1)

    def grad(d):
        return tf.tensor_scatter_nd_update(tf.zeros_like(x), tf.stack([rows, i], -1), d), None

    return tf.gather(x, i, batch_dims=1), grad


@wrong("wrong-region", at=(normal(6),), harmless=(positive(6),))
def manhattan_norm_without_sign(x):
    return total(tf.abs(x)), lambda d: d * tf.ones_like(x)


@wrong("missing-factor", at=(normal(6),))
def cubic_norm_without_division(x):
    y = total(tf.abs(x) ** 3) ** (1 / 3)
    return y, lambda d: d * x * tf.abs(x)


@wrong(at=(positive(5), positive(5, seed=1)))
def dice_without_denominator(p, t):
    n, m = total(p * t), total(p) + total(t)
    return 2 * n / m, lambda d: (2 * d * t / m, 2 * d * p / m)


@wrong("missing-term", at=(X,))
def root_mean_square_norm_as_if_constant(x):
    r = tf.sqrt(mean(x * x, -1, keepdims=True) + tf.cast(1e-6, x.dtype))
    return x / r, lambda d: d / r


@wrong("constant-factor", at=(normal(3, 4), normal(5, 4, seed=1)))
def attention_scores_unscaled(q, k):
    s = tf.sqrt(tf.cast(tf.shape(q)[-1], q.dtype))
    return q @ T(k) / s, lambda d: (d @ k, T(d) @ q)


@wrong("missing-term", "wrong-region", at=(normal(3, 4),))
def log_mean_exp_of_shifted(x):
    m = tf.reduce_max(x, -1, keepdims=True)
    return x - m, lambda d: d


@wrong("transposed", at=(normal(2, 3, 3), normal(2, 3, 3, seed=1)))
def batched_product_axes(a, b):
    return a @ b, lambda d: (d @ b, T(a) @ d)


@wrong("wrong-region", at=(normal(5),))
def trapezoid_ends_counted_full(y):
    return total((y[1:] + y[:-1]) / 2), lambda d: d * tf.ones_like(y)


@wrong("constant-factor", at=(complexes(4),))
def squared_modulus_factor(z):
    return tf.math.real(z * tf.math.conj(z)), lambda d: tf.cast(d, z.dtype) * z


@wrong("conjugate-missing", at=(complexes(3), complexes(3, seed=1)))
def complex_quotient(a, b):
    return a / b, lambda d: (d / b, -d * a / (b * b))


@wrong("residual-constant", at=(X,))
def logsumexp_constant_weights(x):
    w = tf.stop_gradient(tf.nn.softmax(x))
    return tf.reduce_logsumexp(x, -1), lambda d: d[:, None] * w


@wrong("residual-constant", at=(normal(3, 3, dtype="float64") + 3 * tf.eye(3, dtype=tf.float64),))
def inverse_constant_residual(a):
    y = tf.linalg.inv(a)
    k = tf.stop_gradient(y)
    return y, lambda d: -T(k) @ d @ T(k)


@wrong("upstream-nonlinear", at=(X,))
def gradient_normalised(x):
    return tf.sin(x), lambda d: tf.cos(x) * d / tf.norm(d)


@wrong("broadcast-not-reduced", at=(normal(2, 3, 4), normal(3, 1, seed=1)))
def affine_offset_not_summed(x, b):
    return x + b, lambda d: (d, total(d, 0))


@wrong("wrong-shape", "transposed", "broadcast-not-reduced", at=(normal(3, 4), normal(4, seed=1)))
def matvec_weight_flattened(a, x):
    return tf.linalg.matvec(a, x), lambda d: (
        tf.reshape(d[:, None] * x[None], [-1]),
        tf.linalg.matvec(a, d, transpose_a=True),
    )


@wrong("sign", at=(normal(4), normal(4, seed=1)))
def margin_second_sign(a, b):
    return tf.nn.softplus(a - b), lambda d: (d * tf.sigmoid(a - b), d * tf.sigmoid(a - b))


@wrong("constant-factor", at=(probability(3, 4), positive(3, 4, seed=1)))
def weighted_mean_by_size(x, w):
    y = total(x * w) / total(w)
    return y, lambda d: (d * 2 * w / total(w), d * (x - y) / total(w))


@right(at=(WIDE,))
def hard_swish(x):
    y = x * tf.clip_by_value(x + 3, 0, 6) / 6
    return y, lambda d: d * tf.where(x < -3, 0 * x, tf.where(x > 3, tf.ones_like(x), (2 * x + 3) / 6))


@right(at=(normal(5), normal(5, seed=1)))
def log_add_exp(a, b):
    m = tf.maximum(a, b)
    return m + tf.math.log(tf.exp(a - m) + tf.exp(b - m)), lambda d: (
        d * tf.sigmoid(a - b),
        d * tf.sigmoid(b - a),
    )


@right(at=(X,))
def root_mean_square_norm(x):
    r = tf.sqrt(mean(x * x, -1, keepdims=True) + tf.cast(1e-6, x.dtype))
    y = x / r
    return y, lambda d: (d - y * mean(d * y, -1, keepdims=True)) / r


@right(at=(normal(3, 4), normal(5, 4, seed=1), normal(5, 2, seed=2)))
def attention(q, k, v):
    s = tf.sqrt(tf.cast(tf.shape(q)[-1], q.dtype))
    p = tf.nn.softmax(q @ T(k) / s)

    def grad(d):
        dp = d @ T(v)
        ds = p * (dp - total(dp * p, -1, keepdims=True)) / s
        return ds @ k, T(ds) @ q, T(p) @ d

    return p @ v, grad


@right(at=(normal(3, 4), tf.constant([[0, 0], [1, 2], [3, 3]])))
def take_along_axis(x, i):
    rows = tf.repeat(tf.range(tf.shape(x)[0])[:, None], tf.shape(i)[1], 1)

    def grad(d):
        return tf.tensor_scatter_nd_add(tf.zeros_like(x), tf.stack([rows, i], -1), d), None

    return tf.gather(x, i, batch_dims=1), grad


@right(at=(complexes(3), complexes(3, seed=1)))
def complex_quotient_conjugated(a, b):
    return a / b, lambda d: (d / tf.math.conj(b), -d * tf.math.conj(a / (b * b)))


@right(at=(normal(6),))
def manhattan_norm(x):
    return total(tf.abs(x)), lambda d: d * tf.sign(x)


@right(at=(normal(5), index(3, 1)))
def kth_values(x, k):
    order = tf.argsort(x)
    chosen = tf.gather(order, k)
    return tf.gather(x, chosen), lambda d: (tf.math.unsorted_segment_sum(d, chosen, tf.shape(x)[0]), None)
