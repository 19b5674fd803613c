"""The differentiable functions of `keras.ops`, on the backend that `KERAS_BACKEND` names."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras

sys.path.append(str(pathlib.Path(__file__).parent))

import driver
from known_keras import KNOWN
from spelled import calls_of, left_out_of

OPS = {
    "x": "abs absolute amax amin angle arcsinh arctan array average cbrt ceil celu conj conjugate copy "
    "cos cosh "
    "corrcoef cumprod cumsum deg2rad diag diagonal diff elu erf erfc exp exp2 expm1 fabs flip fliplr flipud "
    "floor gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh i0 imag leaky_relu log_sigmoid "
    "log_softmax logsumexp max mean median min nan_to_num nancumprod nancumsum nanmax nanmean nanmedian "
    "nanmin "
    "nanprod nanstd nansum nanvar negative norm normalize pinv prod ptp rad2deg ravel real reciprocal relu "
    "relu6 rms_normalization rot90 round selu sigmoid sign silu sin sinc sinh soft_shrink softmax softplus "
    "softsign sort sparse_plus sparse_sigmoid sparsemax square squareplus squeeze std sum swish tan tanh "
    "tanh_shrink trace transpose tril triu trunc unstack var convert_to_tensor sort rfft",
    "x, axis=1": "sum mean prod max min std var cumsum cumprod sort softmax log_softmax logsumexp norm "
    "median "
    "normalize layer_normalization average",
    "u": "arccos arcsin arctanh erfinv",
    "t": "arccos",
    "p": "log log10 log1p log2 sqrt rsqrt",
    "g": "arccosh",
    "xs": "diagflat vander",
    "x, y": "add subtract multiply divide true_divide divide_no_nan arctan2 fmax fmin hypot logaddexp "
    "logaddexp2 "
    "maximum minimum append inner outer kron vdot heaviside nextafter cdist polar",
    "x, p": "floor_divide fmod mod",
    "p, x": "power",
    "x, 3": "power repeat ldexp",
    "p, q, 3.0": "psnr",
    "xyz, abc": "cross",
    "x, y, 2": "tensordot",
    "x, y.T": "dot matmul",
    "xs, ys": "correlate meshgrid outer vdot",
    "[x, y]": "concatenate stack hstack vstack dstack",
    "x, (4, 3)": "reshape",
    "xs, (3, 4)": "broadcast_to",
    "x, 0": "expand_dims",
    "x, 0, 1": "moveaxis swapaxes",
    "x, 2": "roll tile hsplit array_split top_k",
    "x, 3, 0": "split",
    "cube, 2": "dsplit",
    "tall.T, 3": "vsplit",
    "x, [[1, 1], [2, 0]]": "pad",
    "x, [[1, 1], [2, 0]], 'reflect'": "pad",
    "x, 0.3": "quantile nanquantile",
    "x, 30.0, axis=0": "percentile nanpercentile",
    "x, 0.3, 1.7": "threshold",
    "x, -0.5, 1.5": "clip",
    "mask, x, y": "where",
    "[mask, ~mask], [x, y]": "select",
    "x, i": "take",
    "x, ii, axis=0": "take_along_axis",
    "x, (1, 0), (2, 3)": "slice",
    "x, (1, 0), y[:2, :3]": "slice_update",
    "i[:, None], x, (4, 4)": "scatter",
    "x, i[:, None], y": "scatter_update",
    "x, slice(1, 3)": "get_item",
    "x, seg, 3": "segment_max segment_min segment_prod segment_sum",
    "x, i, 3": "segment_max segment_min segment_prod segment_sum",
    "one, two": "linspace logspace",
    "one, two, 5": "geomspace",
    "x, up": "trapezoid",
    "'ij,kj->ik', x, y": "einsum",
    "x, 'a b -> b a'": "rearrange",
    "x, 'float64'": "cast saturate_cast",
    "i, xs[:3]": "bincount",
    "a": "det inv slogdet lu_factor qr svd",
    "pos": "cholesky cholesky_inverse eigh logdet",
    "sym": "eigh",
    "tall": "qr pinv",
    "tall, full_matrices=False": "svd",
    "a, rhs": "solve",
    "low, rhs, lower=True": "solve_triangular",
    "tall, xs": "lstsq",
    "t, t ** 2": "binary_crossentropy",
    "t, x, from_logits=True": "binary_crossentropy",
    "p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)": "categorical_crossentropy",
    "p / p.sum(1, keepdims=True), x, from_logits=True": "categorical_crossentropy",
    "labels, q / q.sum(1, keepdims=True)": "sparse_categorical_crossentropy",
    "labels, x, from_logits=True": "sparse_categorical_crossentropy",
    "x, xs, ps, -1, ys, ps": "batch_normalization",
    "x, xs, ys": "layer_normalization",
    "x, xs": "rms_normalization",
    "x, [0]": "moments",
    "img, 2": "average_pool max_pool",
    "img, 2, 1, 'same'": "average_pool max_pool",
    "img, 3": "adaptive_average_pool adaptive_max_pool",
    "img[:, :4], 2": "space_to_depth",
    "np.concatenate([img, img], -1), 2": "depth_to_space",
    "img, ker2": "conv",
    "img, ker2, 2, 'same'": "conv",
    "np.concatenate([img, img[..., :1]], -1), ker2, 2": "conv_transpose",
    "img, dep": "depthwise_conv",
    "img, dep, x.reshape(1, 1, 4, 3)": "separable_conv",
    "img.transpose(0, 3, 1, 2), 2": "unfold",
    "np.concatenate([x, y], 0).reshape(1, 4, 6), (3, 4), 2": "fold",
    "(x, y)": "fft fft2 ifft2",
    "(rhs[:, 0:2], rhs[:, 0:2]), fft_length=2": "irfft",
    "c": "real imag conj abs angle view_as_real exp square sum",
    "rhs": "view_as_complex",
    "seq[0, :, 0], 4, 2, 4": "stft",
    "seq[0, :, 0], 4, 2": "extract_sequences",
    "seq[:, :4, None], seq[:, 2:6, None], 2 * seq[:, 2:6, None]": "dot_product_attention",
    "labels[None, :1] + 1, seq[:1], np.array([1]), np.array([8])": "ctc_loss",
    "lambda c, v: (c + v, c * v), xs, x": "scan",
    "lambda a, b: a * b, x": "associative_scan",
    "lambda v: v ** 3, x": "map vectorized_map",
    "1, [lambda v: v, lambda v: v ** 2], x": "switch",
    "0, 3, lambda i, v: v * v, x": "fori_loop",
}
SPELLED = {"keras.ops": OPS}
LEFT_OUT = {
    "keras.ops": {
        "integers, booleans or positions come out": "all allclose any argmax argmin argpartition argsort "
        "bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift "
        "bitwise_xor "
        "count_nonzero ctc_decode digitize equal gcd greater greater_equal histogram in_top_k isclose "
        "isfinite "
        "isin isinf isnan isneginf isposinf isreal lcm left_shift less less_equal logical_and logical_not "
        "logical_or logical_xor matrix_rank multi_hot nanargmax nanargmin nonzero not_equal one_hot "
        "right_shift "
        "searchsorted signbit unravel_index",
        "makes a tensor of none": "arange bartlett blackman empty empty_like eye full full_like hamming "
        "hanning "
        "identity kaiser ones ones_like tri zeros zeros_like",
        "no function of tensors": "convert_to_numpy dtype is_tensor ndim shape size custom_gradient jvp "
        "vectorize",
        "the shape depends on the values": "unique",
        "runs the functions that it is given": "cond while_loop",
        "the bits as another dtype": "view",
        "takes what another function made": "istft",
        "passes no gradient on purpose": "stop_gradient",
        "eigenvectors have any phase: none is the derivative of another": "eig",
    },
}


def tensor(value: Any) -> Any:
    """Give a tensor of the backend with all of its digits."""
    return keras.ops.convert_to_tensor(value)


def table() -> driver.Table:
    """Give the table."""
    calls = calls_of(SPELLED, tensor, {"ops": keras.ops})
    return driver.Table(
        f"Keras on {keras.config.backend()}", keras.__version__, calls, KNOWN, left_out_of(SPELLED, LEFT_OUT)
    )
