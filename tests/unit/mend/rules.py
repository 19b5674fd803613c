"""Rules with one mistake each, and the edit that mends it, as a search writes it."""

import numpy as np
import tensorflow as tf

import pullback as pb

RULES = {}


def normal(*shape, seed=0, dtype="float32"):
    return tf.constant(np.random.default_rng(seed).normal(size=shape), dtype)


def rule(words, *at, maker=tf.custom_gradient):
    """Enter a wrong rule with words that name its bug."""

    def enter(body):
        RULES[body.__name__] = (maker(body), at, words)
        return body

    return enter


@rule("a minus is missing", normal(5))
def cosine(x):
    return tf.cos(x), lambda d: d * tf.sin(x)


@rule("the factor `2` is missing", normal(5), maker=pb.custom_gradient)
def square(x):
    def grad(d):  # comments stay
        dx = d * x
        return (dx,)

    return x * x, grad


@rule("the term `-tf.reduce_sum(d * y, -1, keepdims=True)` is missing", normal(3, 4))
def softmax(x):
    y = tf.nn.softmax(x)
    return y, lambda d: d * y


@rule("`tf.stop_gradient` around `tf.cosh(x)` is too many", normal(5))
def second_order_only(x):
    c = tf.stop_gradient(tf.cosh(x))
    return tf.sinh(x), lambda d: d * c


@rule("`x` stands where `y` is meant", normal(4), normal(4, seed=1))
def product(x, y):
    return x * y, lambda d: (d * x, d * y)


@rule("is not shared among ties", tf.constant([1.0, 2.0, 2.0, 0.5]))
def maximum(x):
    y = tf.reduce_max(x)
    return y, lambda d: d * tf.cast(x == y, x.dtype)


@rule("`d` does not go through `tf.cumsum`", normal(4))
def cumulated(x):
    return tf.cumsum(x), lambda d: d


@rule("`b` is not transposed (line", normal(3, 3), normal(3, 3, seed=1))
def matrices(a, b):  # at other shapes neither of the two runs until both are right
    return a @ b, lambda d: (d @ b, a @ d)


@rule("the term `-tf.reduce_mean(x * (d / r), -1, keepdims=True) * (x / r)` is missing", normal(2, 4))
def normalised(x):
    r = tf.sqrt(tf.reduce_mean(x * x, -1, keepdims=True))
    return x / r, lambda d: d / r


@rule("`3` stands where `6` is meant", normal(4), maker=pb.custom_gradient)
def second_by_hand(x):
    def grad(dy):
        def gradgrad(ddx):
            return ddx * dy * 3 * x

        return dy * 3 * x**2, gradgrad

    return x**3, grad


# Its gradient is right where the labels of a row sum to one, as the given ones do.
@rule("`labels` stands where `smoothed` is meant", normal(3, 4), tf.one_hot([0, 2, 1], 4))
def smoothed_loss(logits, labels):
    smoothed = labels * 0.9 + 0.025
    logp = tf.nn.log_softmax(logits)

    def grad(d):
        return (tf.exp(logp) - labels) * d[:, None], -0.9 * logp * d[:, None]

    return -tf.reduce_sum(smoothed * logp, -1), grad


# A size is written into it, and stays: what is wrong is another thing.
@rule("the factor `4.0` is too many", normal(4, 3), tf.constant([1, 3, 1]))
def taken(table, index):
    def grad(d):
        return tf.scatter_nd(index[:, None], d, [4, 3]) / 4.0, None

    return tf.gather(table, index), grad


# The mean is over every entry, not over the examples.
@rule(
    "`tf.shape(z)[0]` stands where `tf.size(z)` is meant",
    normal(5, 4),
    tf.cast(normal(5, 4, seed=1) > 0, "float32"),
)
def focal_loss(z, t):
    p = tf.sigmoid(z)
    q = tf.where(t > 0.5, p, 1 - p)
    n = tf.cast(tf.shape(z)[0], z.dtype)

    def grad(d):
        dq = 2 * (1 - q) * tf.math.log(q) - (1 - q) ** 2 / q
        dq *= q * (1 - q) * tf.where(t > 0.5, tf.ones_like(p), -tf.ones_like(p))
        return d * dq / n, None

    return tf.reduce_mean(-((1 - q) ** 2) * tf.math.log(q)), grad


@rule("a minus too many before `d`", normal(5))
def bound_to_float32(x):
    return 2 * tf.abs(x), lambda d: -d * tf.where(x > 0, 2.0, -2.0)


WEIGHT = tf.Variable(normal(3, 2))


@rule("the factor `2.0` is too many", normal(4, 3))
def read_variable(x):
    def grad(d, variables=None):
        return tf.matmul(d, WEIGHT, transpose_b=True), [2.0 * tf.matmul(x, d, transpose_a=True)]

    return tf.matmul(x, WEIGHT), grad


# `tf.math.log(10.0)` is a float32: rounding looks like kinks.
@rule("the factor `0.4342944819", normal(7))
def common_logarithm(x):
    z = tf.square(x) + 1.0
    return tf.math.log(z) / tf.math.log(10.0), lambda d: d * 2.0 * x / z
