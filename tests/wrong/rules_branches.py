"""Rules wrong on a branch: a threshold, a kink, zero, a tie; and right ones with the same edges."""

import tensorflow as tf
from zoo import constant, normal, positive, right, wrong

P = positive(4)
N = normal(6)
REGION = "wrong-region"


def where(c, d, e):
    return tf.where(c, d, tf.cast(e, d.dtype) * tf.ones_like(d))


@wrong(REGION, at=(constant([-1.0, 0.3, 0.6, 2.0]),), harmless=(N,))
def elu_branch_on_one(x):
    y = tf.nn.elu(x)
    return y, lambda d: tf.where(y >= 1, d, d * (y + 1))


@wrong(REGION, at=(N,), harmless=(P,))
def relu_leaks(x):
    return tf.nn.relu(x), lambda d: tf.where(x > 0, d, d / 10)


@wrong(REGION, at=(N,), harmless=(constant([1.0, 1.0, 1.0]),))
def absolute_without_sign(x):
    return tf.abs(x), lambda d: d


@wrong(REGION, at=(N,), harmless=(P,))
def leaky_relu_wrong_slope(x):
    return tf.where(x > 0, x, x / 5), lambda d: tf.where(x > 0, d, d / 10)


@wrong(REGION, at=(constant([-1.0, 3.0, 7.0, 8.0]),), harmless=(N,))
def relu6_without_top(x):
    return tf.clip_by_value(x, 0, 6), lambda d: tf.where(x > 0, d, 0 * d)


@wrong(REGION, at=(constant([-4.0, -2.0, 1.0, 4.0]),), harmless=(N,))
def hard_sigmoid_region(x):
    return tf.clip_by_value(x / 5 + 1 / 2, 0, 1), lambda d: tf.where(tf.abs(x) < 3, d / 5, 0 * d)


@wrong(REGION, at=(constant([-4.0, -2.0, 0.3, 0.5, 4.0]),), harmless=(constant([0.1, 0.2, -0.3, 0.4]),))
def huber_quadratic_everywhere(x):
    a = tf.abs(x)
    return tf.where(a < 1, x * x / 2, a - 1 / 2), lambda d: d * x


@wrong(REGION, at=(constant([-4.0, -2.0, 0.3, 0.5, 4.0]),), harmless=(N,))
def huber_linear_without_sign(x):
    a = tf.abs(x)
    return tf.where(a < 1, x * x / 2, a - 1 / 2), lambda d: tf.where(a < 1, d * x, d)


@wrong(REGION, at=(constant([1.0, 2.0, 2.0, 0.5]),), harmless=(N,))
def reduce_max_to_each_tie(x):
    y = tf.reduce_max(x)
    return y, lambda d: d * tf.cast(x == y, x.dtype)


@wrong(REGION, at=(constant([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]]),), harmless=(normal(2, 3),))
def row_max_to_each_tie(x):
    y = tf.reduce_max(x, axis=1, keepdims=True)
    return y[:, 0], lambda d: d[:, None] * tf.cast(x == y, x.dtype)


@wrong(
    REGION, at=(constant([1.0, 2.0, 3.0]), constant([1.0, 1.0, 3.0])), harmless=(normal(4), normal(4, seed=1))
)
def maximum_to_both_at_ties(a, b):
    return tf.maximum(a, b), lambda d: (tf.where(a >= b, d, 0 * d), tf.where(b >= a, d, 0 * d))


@wrong("nonfinite", REGION, at=(constant([1.0, 0.0, 2.0]),), harmless=(P,))
def square_by_division(x):
    y = x * x
    return y, lambda d: 2 * d * y / x


@wrong("nonfinite", at=(constant([1.0, -0.5, 0.0]),), harmless=(P,))
def guarded_root_double_where(x):
    y = tf.where(x > 0, tf.sqrt(tf.abs(x)) * x, tf.zeros_like(x))
    return y, lambda d: tf.where(x > 0, d * 3 / 2 * tf.sqrt(x), 0 * d) + 0 * d / x


@wrong("nonfinite", at=(constant([1.0, 0.0, 2.0]),), harmless=(P,))
def sinc_nan_at_zero(x):
    safe = tf.where(x == 0, tf.ones_like(x), x)
    return tf.where(
        x == 0, tf.ones_like(x), tf.sin(safe) / safe
    ), lambda d: d * (x * tf.cos(x) - tf.sin(x)) / (x * x)


@wrong("nonfinite", at=(constant([1.0, 100.0, 2.0], "float64"),), harmless=(P,))
def softplus_overflow(x):
    return tf.math.softplus(
        x
    ), lambda d: d * tf.exp(x * 9) / (1 + tf.exp(x * 9)) * 0 + d * tf.exp(x) / (1 + tf.exp(x))


@wrong(REGION, at=(constant([1.0, 0.0, 2.0]),), harmless=(P,))
def cube_root_of_cube_at_zero(x):
    return x + x**3, lambda d: tf.where(x == 0, 0 * d, d * (1 + 3 * x * x))


@wrong(REGION, "nonfinite", at=(constant([3.0, 0.0, 2.0]),), harmless=(P,))
def product_by_division(x):
    y = tf.reduce_prod(x)
    return y, lambda d: tf.math.divide_no_nan(d * y, x)


@wrong(REGION, at=(N,), harmless=(P,))
def power_three_halves_of_absolute(x):
    return tf.abs(x) ** 3, lambda d: 3 * d * x * x


@wrong(REGION, at=(normal(4, 3),))
def last_row_forgotten(x):
    mask = tf.reshape(tf.cast(tf.range(tf.shape(x)[0]) < tf.shape(x)[0] - 1, x.dtype), [-1, 1])
    return tf.sin(x), lambda d: d * tf.cos(x) * mask


@wrong(REGION, at=(normal(5),))
def first_entry_doubled(x):
    mask = tf.cast(tf.range(tf.size(x)) == 0, x.dtype)
    return tf.exp(x), lambda d: d * tf.exp(x) * (1 + mask)


@wrong(REGION, at=(normal(3, 3),))
def diagonal_forgotten(x):
    return x * x, lambda d: d * 2 * x * (1 - tf.eye(3, dtype=x.dtype))


@wrong("surrogate", at=(N,), harmless=(constant([0.2, 0.5, -0.4]),))
def clip_passes_everything(x):
    return tf.clip_by_value(x, -1, 1), lambda d: d


@wrong(REGION, at=(N,), harmless=(constant([0.2, 0.5, 0.4]),))
def clip_lower_bound_forgotten(x):
    return tf.clip_by_value(x, -1, 1), lambda d: tf.where(x < 1, d, 0 * d)


@wrong(REGION, at=(constant([-3.0, -1.0, 0.5, 2.0]),), harmless=(P,))
def selu_wrong_alpha(x):
    return (
        tf.nn.selu(x),
        lambda d: (
            d
            * tf.where(x > 0, tf.cast(1.0507009873554805, x.dtype), tf.cast(1.67326324, x.dtype) * tf.exp(x))
        ),
    )


@wrong(REGION, at=(constant([-3.0, -1.0, 0.5, 2.0]),), harmless=(P,))
def log_sigmoid_unstable_branch(x):
    return tf.math.log_sigmoid(x), lambda d: d * tf.where(x > 0, tf.sigmoid(-x), tf.sigmoid(x))


@wrong(REGION, at=(constant([-3.0, -1.0, 0.5, 2.0]), constant([0.5, 0.5, 1.0, -0.5])), harmless=(P, P))
def hinge_wrong_side(score, label):
    m = 1 - score * label
    return tf.nn.relu(m), lambda d: (tf.where(m < 0, -d * label, 0 * d), tf.where(m < 0, -d * score, 0 * d))


@right(at=(N,))
def relu(x):
    return tf.nn.relu(x), lambda d: tf.where(x > 0, d, 0 * d)


@right(at=(constant([-1.0, 0.0, 2.0]),))
def relu_one_at_zero(x):
    return tf.nn.relu(x), lambda d: tf.where(x >= 0, d, 0 * d)


@right(at=(constant([-1.0, 0.0, 2.0]),))
def relu_half_at_zero(x):
    return tf.nn.relu(x), lambda d: d * (tf.sign(x) + 1) / 2


@right(at=(constant([-1.0, 0.0, 2.0]),))
def absolute(x):
    return tf.abs(x), lambda d: d * tf.sign(x)


@right(at=(constant([-1.0, 0.0, 2.0]),))
def absolute_one_at_zero(x):
    return tf.abs(x), lambda d: tf.where(x >= 0, d, -d)


@right(at=(N,))
def elu(x):
    y = tf.nn.elu(x)
    return y, lambda d: tf.where(x >= 0, d, d * (y + 1))


@right(at=(constant([-4.0, -1.0, 0.3, 1.0, 4.0]),))
def huber(x):
    a = tf.abs(x)
    return tf.where(a < 1, x * x / 2, a - 1 / 2), lambda d: d * tf.clip_by_value(x, -1, 1)


@right(at=(constant([-4.0, -1.0, 0.3, 1.0, 4.0]),))
def clip_to_one(x):
    return tf.clip_by_value(x, -1, 1), lambda d: tf.where(tf.abs(x) <= 1, d, 0 * d)


@right(at=(constant([0.0, 3.0, 6.0, 8.0, -1.0]),))
def relu6(x):
    return tf.nn.relu6(x), lambda d: tf.where((x > 0) & (x < 6), d, 0 * d)


@right(at=(constant([1.0, 2.0, 2.0, 0.5]),))
def reduce_max_shared(x):
    y = tf.reduce_max(x)
    hit = tf.cast(x == y, x.dtype)
    return y, lambda d: d * hit / tf.reduce_sum(hit)


@right(at=(constant([1.0, 2.0, 2.0, 0.5]),))
def reduce_max_first(x):
    return tf.reduce_max(x), lambda d: d * tf.one_hot(tf.argmax(x), tf.size(x), dtype=x.dtype)


@right(at=(constant([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]]),))
def row_max_shared(x):
    y = tf.reduce_max(x, axis=1, keepdims=True)
    hit = tf.cast(x == y, x.dtype)
    return y[:, 0], lambda d: d[:, None] * hit / tf.reduce_sum(hit, 1, keepdims=True)


@right(at=(constant([1.0, 2.0, 3.0]), constant([1.0, 1.0, 3.0])))
def minimum_halves_ties(a, b):
    h = tf.cast(a < b, a.dtype) + tf.cast(a == b, a.dtype) / 2
    return tf.minimum(a, b), lambda d: (d * h, d * (1 - h))


@right(at=(P,))
def square_root(x):
    y = tf.sqrt(x)
    return y, lambda d: d / (2 * y)


@right(at=(constant([0.0, 1.0, 4.0]),))
def square_root_at_zero(x):
    y = tf.sqrt(x)
    return y, lambda d: tf.math.divide_no_nan(d, 2 * y)


@right(at=(constant([1.0, 100.0, -3.0]),))
def softplus_stable(x):
    return tf.math.log(1 + tf.exp(x)), lambda d: d * tf.sigmoid(x)


@right(at=(constant([1.0, 40.0, -300.0]),))
def log_sigmoid(x):
    return tf.math.log_sigmoid(x), lambda d: d * tf.sigmoid(-x)


@right(at=(constant([1.0, 0.0, 2.0]),))
def x_log_x(x):
    safe = tf.where(x > 0, x, tf.ones_like(x))
    return tf.where(x > 0, x * tf.math.log(safe), tf.zeros_like(x)), lambda d: tf.where(
        x > 0, d * (tf.math.log(safe) + 1), 0 * d
    )


@right(at=(constant([3.0, 0.0, 2.0]),))
def product_exclusive(x):
    n = x.shape[0]
    others = tf.stack([tf.reduce_prod(tf.concat([x[:i], x[i + 1 :]], 0)) for i in range(n)])
    return tf.reduce_prod(x), lambda d: d * others


@right(at=(normal(3, 3),))
def hard_tanh(x):
    return tf.clip_by_value(x, -1, 1), lambda d: d * tf.cast(tf.abs(x) < 1, x.dtype)


@right(at=(constant([-2.0, 0.0, 1.0]),))
def floor_has_no_slope(x):
    return tf.floor(x), lambda d: tf.zeros_like(d)


@right(at=(constant([-3.0, -1.0, 0.5, 2.0]), constant([0.5, 0.5, 1.0, -0.5])))
def hinge(score, label):
    m = 1 - score * label
    return tf.nn.relu(m), lambda d: (tf.where(m > 0, -d * label, 0 * d), tf.where(m > 0, -d * score, 0 * d))
