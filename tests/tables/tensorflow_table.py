"""The differentiable functions of `tf.math`, `tf.linalg` and `tf.nn`."""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

sys.path.append(str(pathlib.Path(__file__).parent))

import driver
from known_tensorflow import KNOWN
from spelled import calls_of, left_out_of

MATH = {
    "x": "abs asinh atan conj cos cosh cumprod cumsum cumulative_logsumexp erf erfc exp expm1 ceil floor "
    "rint "
    "round sign imag real angle l2_normalize log_sigmoid log_softmax negative reciprocal reciprocal_no_nan "
    "reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std "
    "reduce_sum reduce_variance sigmoid sin sinh softmax softplus softsign square tan tanh bessel_i0 "
    "bessel_i0e bessel_i1 bessel_i1e special.bessel_i0 special.bessel_i0e special.bessel_i1 "
    "special.bessel_i1e special.bessel_j0 special.bessel_j1 special.dawsn special.fresnel_cos "
    "special.fresnel_sin",
    "x, axis=1": "cumprod cumsum cumulative_logsumexp reduce_euclidean_norm reduce_logsumexp reduce_max "
    "reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance softmax log_softmax "
    "l2_normalize",
    "x, axis=1, exclusive=True, reverse=True": "cumprod cumsum cumulative_logsumexp",
    "u": "acos asin atanh erfinv",
    "t": "ndtri special.spence",
    "2 * t": "erfcinv",
    "g": "acosh",
    "p": "digamma lgamma log log1p sqrt rsqrt lbeta special.bessel_k0 special.bessel_k0e special.bessel_k1 "
    "special.bessel_k1e special.bessel_y0 special.bessel_y1 special.expint special.spence",
    "x, y": "add atan2 divide divide_no_nan maximum minimum multiply multiply_no_nan subtract truediv "
    "squared_difference xdivy nextafter",
    "x, p": "floordiv floormod mod xlogy xlog1py",
    "p, q": "igamma igammac xlogy",
    "p, x": "pow",
    "x, 3.0": "pow",
    "p, q, t": "betainc",
    "g, p": "zeta",
    "np.array(1.0), p": "polygamma",
    "[x, y, z]": "add_n accumulate_n",
    "[one, two, 0.5 * one], x": "polyval",
    "one, x": "scalar_mul",
    "x, 2": "top_k",
    "x, seg": "segment_max segment_mean segment_min segment_prod segment_sum",
    "x, i, 3": "unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod "
    "unsorted_segment_sqrt_n unsorted_segment_sum",
    "x, seg, 3": "unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod "
    "unsorted_segment_sqrt_n unsorted_segment_sum",
    "i, weights=xs[:3]": "bincount",
    "c": "abs conj real imag angle exp log sin cos tanh sqrt square reciprocal reduce_sum reduce_prod cumsum "
    "cumprod sigmoid sinh cosh asinh atan log1p expm1",
    "c, d": "add multiply divide subtract pow",
}
LINALG = {
    "a": "adjoint det diag_part eigvals expm inv lu qr slogdet svd trace tensor_diag_part",
    "pos": "cholesky eigh eigvalsh logdet inv det sqrtm",
    "sym": "eigh eigvalsh",
    "x": "l2_normalize norm matrix_transpose normalize pinv svd diag",
    "tall": "qr pinv svd norm",
    "x, axis=1": "norm normalize l2_normalize",
    "x, ord=1": "norm",
    "x, 1, 0": "band_part",
    "xs": "diag tensor_diag",
    "x, xs[:3]": "set_diag",
    "xyz, abc": "cross",
    "a, rhs": "solve",
    "low, rhs": "cholesky_solve triangular_solve",
    "a, rhs, adjoint=True": "solve",
    "tall, tall": "lstsq",
    "pos, rhs, fast=False": "lstsq",
    "x, y, transpose_b=True": "matmul",
    "x, xs": "matvec",
    "x, y, 2": "tensordot",
    "'ij,kj->ik', x, y": "einsum",
    "[x, y]": "global_norm",
    "np.stack([xs, ps + 4, ys]), tall": "tridiagonal_solve",
    "np.stack([xs, ps, ys]), tall, 'compact'": "tridiagonal_matmul",
    "p[:2, :3], rhs": "banded_triangular_solve",
    "c": "adjoint norm",
    "ca": "det inv qr trace adjoint matrix_transpose",
    "her": "eigvalsh",
    "c, d, adjoint_b=True": "matmul",
}
NN = {
    "x, 1": "l2_normalize",
    "x, approximate=True": "gelu",
    "x, [0]": "moments sufficient_statistics",
    "x, [0], p": "weighted_moments",
    "x, xs": "bias_add",
    "x, xs, ps, ys, ps, 1e-3": "batch_normalization",
    "img, ps[:2], ps[1:3], xs[:2], ys[:2], 1e-3, True": "batch_norm_with_global_normalization",
    "ps, xs, ys, 0.5": "normalize_moments",
    "labels=t, logits=x": "sigmoid_cross_entropy_with_logits",
    "t, x": "log_poisson_loss",
    "t, x, 1.7": "weighted_cross_entropy_with_logits",
    "labels=p / p.sum(1, keepdims=True), logits=x": "softmax_cross_entropy_with_logits",
    "labels=labels, logits=x": "sparse_softmax_cross_entropy_with_logits",
    "x, i": "embedding_lookup",
    "x, tf.sparse.from_dense([[1, 2], [0, 1]]), None": "embedding_lookup_sparse safe_embedding_lookup_sparse",
    "x, 2": "top_k",
    "x": "crelu elu gelu leaky_relu l2_loss log_softmax relu relu6 selu sigmoid silu softmax softplus "
    "softsign "
    "swish tanh compute_average_loss scale_regularization_loss isotonic_regression",
    "seq, ker1, 1, 'SAME'": "conv1d",
    "seq, ker1, 2, 'VALID'": "conv1d",
    "seq[:, :, :2], ker1, [2, 8, 3], 1": "conv1d_transpose",
    "img, ker2, 1, 'SAME'": "conv2d",
    "img, ker2, 2, 'VALID'": "conv2d",
    "img, ker2, 2, 'SAME'": "atrous_conv2d",
    "img, ker2": "convolution",
    "np.concatenate([img, img[..., :1]], -1), ker2, [1, 5, 6, 2], 1": "conv2d_transpose conv_transpose",
    "np.concatenate([img, img[..., :1]], -1), ker2, [1, 5, 6, 2], 2, 'SAME'": "atrous_conv2d_transpose",
    "vol, ker3, [1, 1, 1, 1, 1], 'SAME'": "conv3d",
    "vol, ker3, [1, 3, 4, 4, 2], 1": "conv3d_transpose",
    "img, dep, [1, 1, 1, 1], 'SAME'": "depthwise_conv2d",
    "img, [2, 2, 2, 2], np.concatenate([img, img], -1), [1] * 4, 'SAME'": "depthwise_conv2d_backprop_filter",
    "[1, 5, 6, 2], dep, np.concatenate([img, img], -1), [1] * 4, 'SAME'": "depthwise_conv2d_backprop_input",
    "img, dep, x.reshape(1, 1, 4, 3), [1, 1, 1, 1], 'SAME'": "separable_conv2d",
    "img, 0.3 * dep[:, :, 0], [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1]": "dilation2d erosion2d",
    "seq, 2, 2, 'VALID'": "avg_pool1d max_pool1d",
    "img, 2, 2, 'SAME'": "avg_pool avg_pool2d max_pool max_pool2d max_pool_with_argmax",
    "img, 3, 1, 'VALID'": "avg_pool max_pool",
    "img, [2, 2], 'AVG'": "pool",
    "vol.astype(np.float32), 2, 2, 'SAME'": "avg_pool3d max_pool3d",
    "img, [1.0, 1.5, 1.5, 1.0], seed=3": "fractional_avg_pool fractional_max_pool",
    "img.astype(np.float32)": "local_response_normalization lrn",
    "img[:, :4], 2": "space_to_depth",
    "img[:, :4], [2, 2], [[0, 0], [0, 0]]": "space_to_batch",
    "np.concatenate([img, img], -1), 2": "depth_to_space",
    "img, [2, 2], 'VALID', lambda i, *_: tf.sin(i)": "with_space_to_batch",
    "np.array([[1, 2]]), seq[:1].transpose(1, 0, 2).astype('f4'), np.array([2]), np.array([8])": "ctc_loss",
}
SPELLED = {"tensorflow.math": MATH, "tensorflow.linalg": LINALG, "tensorflow.nn": NN}
LEFT_OUT = {
    "tensorflow.math": {
        "integers, booleans or positions come out": "argmax argmin confusion_matrix count_nonzero equal "
        "greater "
        "greater_equal in_top_k invert_permutation is_finite is_inf is_nan is_non_decreasing "
        "is_strictly_increasing less less_equal logical_and logical_not logical_or logical_xor not_equal "
        "reduce_all reduce_any zero_fraction",
        "makes a tensor of none": "sobol_sample",
        "for accelerators": "approx_max_k approx_min_k",
    },
    "tensorflow.linalg": {
        "makes a tensor of none": "eye",
        "integers come out": "matrix_rank",
        "complex matrices alone": "logm",
        "a loop of thousands of steps: too slow to be asked often": "eigh_tridiagonal",
        "eigenvectors have any phase: none is the derivative of another": "eig",
        "takes what another function made": "lu_matrix_inverse lu_reconstruct lu_solve",
    },
    "tensorflow.nn": {
        "draws random numbers": "all_candidate_sampler dropout fixed_unigram_candidate_sampler "
        "learned_unigram_candidate_sampler nce_loss sampled_softmax_loss",
        "integers, booleans or positions come out": "collapse_repeated compute_accidental_hits "
        "ctc_beam_search_decoder ctc_greedy_decoder ctc_unique_labels in_top_k zero_fraction",
        "for accelerators": "approx_max_k approx_min_k",
    },
}


def table() -> driver.Table:
    """Give the table."""
    calls = calls_of(SPELLED, tf.constant, {"tf": tf})
    return driver.Table("TensorFlow", "tensorflow", calls, KNOWN, left_out_of(SPELLED, LEFT_OUT))
