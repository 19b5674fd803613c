"""TensorFlow's own functions are not called wrong, except the two that are."""

import numpy as np
import pytest
import tensorflow as tf
from zoo import definite, normal, positive, probability

from pullback.checker import check

ELEMENTWISE = [
    "math.abs",
    "math.acos",
    "math.acosh",
    "math.asin",
    "math.asinh",
    "math.atan",
    "math.atanh",
    "math.ceil",
    "math.cos",
    "math.cosh",
    "math.digamma",
    "math.erf",
    "math.erfc",
    "math.erfinv",
    "math.exp",
    "math.expm1",
    "math.floor",
    "math.lgamma",
    "math.log",
    "math.log1p",
    "math.log_sigmoid",
    "math.ndtri",
    "math.negative",
    "math.reciprocal",
    "math.reciprocal_no_nan",
    "math.rint",
    "math.round",
    "math.rsqrt",
    "math.sigmoid",
    "math.sign",
    "math.sin",
    "math.sinh",
    "math.softplus",
    "math.softsign",
    "math.sqrt",
    "math.square",
    "math.tan",
    "math.tanh",
    "math.erfcinv",
    "math.bessel_i0",
    "math.bessel_i0e",
    "math.bessel_i1",
    "math.bessel_i1e",
    "math.special.bessel_j0",
    "math.special.bessel_j1",
    "math.special.bessel_k0",
    "math.special.bessel_k0e",
    "math.special.bessel_k1",
    "math.special.bessel_k1e",
    "math.special.bessel_y0",
    "math.special.bessel_y1",
    "math.special.dawsn",
    "math.special.expint",
    "math.special.fresnel_cos",
    "math.special.fresnel_sin",
    "math.special.spence",
    "nn.elu",
    "nn.gelu",
    "nn.leaky_relu",
    "nn.relu",
    "nn.relu6",
    "nn.selu",
    "nn.silu",
    "nn.softplus",
    "nn.softsign",
    "nn.crelu",
    "identity",
    "math.conj",
    "math.real",
]
ROWWISE = [
    "nn.softmax",
    "nn.log_softmax",
    "nn.l2_loss",
    "math.reduce_sum",
    "math.reduce_mean",
    "math.reduce_max",
    "math.reduce_min",
    "math.reduce_prod",
    "math.reduce_std",
    "math.reduce_variance",
    "math.reduce_logsumexp",
    "math.reduce_euclidean_norm",
    "math.cumsum",
    "math.cumulative_logsumexp",
    "norm",
    "sort",
    "reverse_last",
    "transpose",
    "linalg.diag_part",
    "linalg.trace",
    "math.lbeta",
    "linalg.normalize_first",
    "l2_normalize",
    "top_2",
]
MATRIX = [
    "linalg.inv",
    "linalg.det",
    "linalg.logdet",
    "linalg.cholesky",
    "linalg.expm",
    "linalg.slogdet_second",
    "linalg.eigvalsh",
    "linalg.matrix_transpose",
    "linalg.adjoint",
    "linalg.pinv",
    "linalg.sqrtm",
    "linalg.svd_values",
    "linalg.qr_r",
    "linalg.lu_packed",
    "linalg.eigh_values",
    "linalg.global_norm_one",
]
OWN = {
    "reverse_last": lambda x: tf.reverse(x, [-1]),
    "linalg.normalize_first": lambda x: tf.linalg.normalize(x)[0],
    "l2_normalize": lambda x: tf.math.l2_normalize(x, -1),
    "top_2": lambda x: tf.math.top_k(x, 2)[0],
    "linalg.slogdet_second": lambda x: tf.linalg.slogdet(x)[1],
    "linalg.svd_values": lambda x: tf.linalg.svd(x, compute_uv=False),
    "linalg.qr_r": lambda x: tf.linalg.qr(x)[1],
    "linalg.lu_packed": lambda x: tf.linalg.lu(x)[0],
    "linalg.eigh_values": lambda x: tf.linalg.eigh(x)[0],
    "linalg.global_norm_one": lambda x: tf.linalg.global_norm([x]),
}


def resolve(name):
    if name in OWN:
        return OWN[name]
    function = tf
    for part in name.split("."):
        function = getattr(function, part)
    return function


def first_inside(function, candidates):
    for x in candidates:
        y = function(x)
        if np.isfinite(np.asarray(tf.nest.flatten(y)[0])).all():
            return x
    raise AssertionError("no example lies in the domain")


def cases():
    for name in ELEMENTWISE:
        yield name, [normal(5), positive(5), probability(5), positive(5) + 1]
    for name in ROWWISE:
        yield name, [normal(3, 4), positive(3, 4)]
    for name in MATRIX:
        yield name, [definite(3)]


@pytest.mark.parametrize(("name", "candidates"), list(cases()), ids=lambda v: v if isinstance(v, str) else "")
def test_a_builtin_function_is_not_called_wrong(name, candidates):
    function = resolve(name)
    report = check(function, first_inside(function, candidates), seed=5, xla=False, export=False)
    assert report.verdict != "wrong", [(f.probe, f.point, f.sentence) for f in report.failures]


def test_silu_with_a_broadcast_beta_is_called_wrong():
    report = check(
        lambda x, beta: tf.nn.silu(x, beta), normal(3, 4), positive(4), seed=5, xla=False, export=False
    )
    assert report.verdict == "wrong"


def test_cumprod_with_a_zero_is_called_wrong():
    report = check(tf.math.cumprod, tf.constant([2.0, 0.0, 3.0]), seed=5, xla=False, export=False)
    assert report.verdict == "wrong"


def test_a_wrong_builtin_is_told_of_at_harmless_input():
    report = check(tf.math.cumprod, tf.constant([2.0, 1.5, 3.0]), seed=5, xla=False, export=False)
    assert any("the host's own gradient is wrong" in f.sentence for f in report.findings)
