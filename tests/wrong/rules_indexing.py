"""Rules that move entries: gather, scatter, sort, roll, pad, slice, scan."""

import numpy as np
import tensorflow as tf
from zoo import constant, index, normal, right, wrong

X = normal(5, 3)
total = tf.reduce_sum


def scatter(indices, updates, like):
    return tf.math.unsorted_segment_sum(updates, indices, tf.shape(like)[0])


@wrong("repeated-index", at=(X, index(0, 2, 2, 1)), harmless=(X, index(0, 2, 4, 1)))
def gather_overwrites(x, i):
    return tf.gather(x, i), lambda d: (tf.tensor_scatter_nd_update(tf.zeros_like(x), i[:, None], d), None)


@wrong("repeated-index", at=(normal(5),), harmless=(normal(5),))
def fixed_gather_overwrites(x):
    i = tf.constant([0, 2, 2, 1])
    return tf.gather(x, i), lambda d: tf.tensor_scatter_nd_update(tf.zeros_like(x), i[:, None], d)


@wrong("transposed", "permuted", at=(normal(5),))
def sort_gradient_not_unsorted(x):
    return tf.sort(x), lambda d: tf.gather(d, tf.argsort(x))


@wrong("transposed", "permuted", "upstream-replaced", at=(normal(5),))
def roll_same_direction(x):
    return tf.roll(x, 1, 0), lambda d: tf.roll(d, 1, 0)


@wrong("transposed", "upstream-replaced", "missing-term", at=(normal(5),))
def cumsum_not_reversed(x):
    return tf.cumsum(x), lambda d: tf.cumsum(d)


@wrong("missing-term", "wrong-region", at=(normal(5),))
def cumsum_passes_upstream(x):
    return tf.cumsum(x), lambda d: d


@wrong("transposed", "permuted", at=(normal(2, 3, 4),))
def transpose_same_permutation(x):
    return tf.transpose(x, [1, 2, 0]), lambda d: tf.reshape(tf.transpose(d, [1, 2, 0]), tf.shape(x))


@wrong("permuted", at=(normal(4),))
def pad_sliced_from_start(x):
    return tf.pad(x, [[2, 1]]), lambda d: d[:-3]


@wrong("broadcast-not-reduced", "repeated-index", at=(normal(3),))
def tile_keeps_first_copy(x):
    return tf.tile(x, [2]), lambda d: d[: tf.shape(x)[0]]


@wrong("missing-term", "wrong-region", at=(normal(6),))
def difference_one_sided(x):
    return x[1:] - x[:-1], lambda d: tf.concat([[0.0 * d[0]], d], 0)


@wrong("constant-factor", at=(normal(6), index(0, 0, 1, 1, 2, 2)))
def segment_mean_without_count(x, s):
    y = tf.math.segment_mean(x, s)
    return y, lambda d: (tf.gather(d, s), None)


@wrong("wrong-region", "missing-term", at=(constant([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]]),))
def top_value_of_first_row_only(x):
    y, i = tf.math.top_k(x, 1)
    return y[
        :, 0
    ], lambda d: tf.one_hot(i[:, 0], 3, dtype=x.dtype) * tf.concat([d[:1], 0 * d[1:]], 0)[:, None]


@wrong("wrong-region", "missing-term", at=(normal(3, 3),))
def lower_triangle_passes_all(x):
    return tf.linalg.band_part(x, -1, 0), lambda d: d


@wrong(
    "wrong-region",
    at=(normal(6), constant([1, 0, 1, 1, 0, 0], "bool")),
    harmless=(normal(6), constant([1] * 6, "bool")),
)
def masked_square_ignores_mask(x, keep):
    return tf.where(keep, x * x, tf.zeros_like(x)), lambda d: (2 * d * x, None)


@wrong("transposed", "upstream-replaced", at=(normal(3, 4),))
def flip_forgotten(x):
    return tf.reverse(tf.exp(x), [0]), lambda d: d * tf.exp(x)


@right(at=(X, index(0, 2, 2, 1)))
def gather_accumulates(x, i):
    return tf.gather(x, i), lambda d: (scatter(i, d, x), None)


@right(at=(normal(5),))
def sort_unsorted(x):
    return tf.sort(x), lambda d: tf.gather(d, tf.argsort(tf.argsort(x)))


@right(at=(constant([1.0, 1.0, 3.0, 0.0]),))
def sort_with_ties(x):
    order = tf.argsort(x, stable=True)
    return tf.gather(x, order), lambda d: tf.gather(d, tf.argsort(order, stable=True))


@right(at=(normal(5),))
def roll(x):
    return tf.roll(x, 1, 0), lambda d: tf.roll(d, -1, 0)


@right(at=(normal(5),))
def cumsum(x):
    return tf.cumsum(x), lambda d: tf.cumsum(d, reverse=True)


@right(at=(normal(2, 3, 4),))
def transpose(x):
    return tf.transpose(x, [1, 2, 0]), lambda d: tf.transpose(d, [2, 0, 1])


@right(at=(normal(6), index(0, 0, 1, 1, 2, 2)))
def segment_mean(x, s):
    y = tf.math.segment_mean(x, s)
    count = tf.cast(tf.math.segment_sum(tf.ones_like(s), s), x.dtype)
    return y, lambda d: (tf.gather(d / count, s), None)


@right(at=(normal(6), index(0, 0, 1, 1, 2, 2)))
def segment_max(x, s):
    y = tf.math.segment_max(x, s)
    hit = tf.cast(x == tf.gather(y, s), x.dtype)
    return y, lambda d: (tf.gather(d / tf.math.segment_sum(hit, s), s) * hit, None)


@right(at=(normal(3, 3),))
def lower_triangle(x):
    return tf.linalg.band_part(x, -1, 0), lambda d: tf.linalg.band_part(d, -1, 0)


@right(at=(normal(4, 6),))
def max_pool_rows(x):
    r = tf.reshape(x, [tf.shape(x)[0], -1, 2])
    y = tf.reduce_max(r, -1)
    hit = tf.cast(r == y[..., None], x.dtype)
    hit = hit / total(hit, -1, keepdims=True)
    return y, lambda d: tf.reshape(d[..., None] * hit, tf.shape(x))


@right(at=(normal(6), constant([1, 0, 1, 1, 0, 0], "bool")))
def masked_square(x, keep):
    return tf.where(keep, x * x, tf.zeros_like(x)), lambda d: (tf.where(keep, 2 * d * x, 0 * d), None)


@right(at=(normal(4), np.float32(2.0)))
def scale_by_scalar(x, c):
    return x * c, lambda d: (d * c, total(d * x))


@right(at=(normal(2, 6),))
def reshape(x):
    return tf.reshape(x, [3, -1]), lambda d: tf.reshape(d, tf.shape(x))
