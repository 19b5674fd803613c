"""Activations and norms keep nothing but their inputs, and are what PyTorch's own are, to second order."""

import mpmath as mp
import numpy as np
import pytest
import tensorflow as tf
import torch
from asked import ASK, DTYPES
from kept_bytes import of_tensorflow, of_torch
from torch.nn import functional

import pullback as pb

ops = pb.ops
X = np.random.default_rng(5).normal(size=(8, 6)) * 2
GATE, SCALE, OFFSET = X[::-1].copy(), np.linspace(0.5, 2, 6), np.linspace(-1, 1, 6)
# name → the rule, PyTorch's own, and the inputs
TABLE = {
    "gelu": (ops.gelu, functional.gelu, [X]),
    "gelu tanh": (
        lambda x: ops.gelu(x, approximate="tanh"), lambda x: functional.gelu(x, approximate="tanh"), [X],
    ),
    "silu": (ops.silu, functional.silu, [X]),
    "mish": (ops.mish, functional.mish, [X]),
    "swiglu": (ops.swiglu, lambda g, x: functional.silu(g) * x, [GATE, X]),
    "geglu": (ops.geglu, lambda g, x: functional.gelu(g) * x, [GATE, X]),
    "geglu tanh": (
        lambda g, x: ops.geglu(g, x, approximate="tanh"),
        lambda g, x: functional.gelu(g, approximate="tanh") * x,
        [GATE, X],
    ),
    "geglu broadcast": (ops.geglu, lambda g, x: functional.gelu(g) * x, [GATE[:, :1], X]),
    "rms_norm": (ops.rms_norm, lambda x, s: functional.rms_norm(x, (6,), s, 1e-6), [X, SCALE]),
    "layer_norm": (ops.layer_norm, lambda x, s, b: functional.layer_norm(x, (6,), s, b), [X, SCALE, OFFSET]),
    "batch_norm": (
        lambda *xs: ops.batch_norm(*xs)[0],
        lambda x, s, b: functional.batch_norm(x, None, None, s, b, True),
        [X, SCALE, OFFSET],
    ),
}  # fmt: skip
REDUCTIONS = [
    ops.softmax,
    ops.log_softmax,
    ops.logsumexp,
    ops.safe_norm,
    ops.normalize,
    ops.prod,
    ops.cumprod,
]


@pytest.mark.parametrize("name", TABLE)
def test_nothing_is_kept_beyond_the_inputs(name):
    rule, _, arrays = TABLE[name]
    assert of_tensorflow(rule, *[tf.constant(a) for a in arrays]) == 0
    assert of_torch(rule, *[torch.tensor(a, requires_grad=True) for a in arrays]) == 0


def test_gelu_has_its_digits_on_jax_where_the_error_function_is_one():
    for dtype in (np.float32, np.float64):
        x = np.linspace(-12, -5, 15).astype(dtype)
        (y,), (slope,) = ASK["jax"](ops.gelu, [x])
        for found, true in (
            (y, [v * mp.ncdf(v) for v in map(float, x)]),
            (slope, [mp.ncdf(v) + v * mp.npdf(v) for v in map(float, x)]),
        ):
            np.testing.assert_allclose(found, np.array(true, float), rtol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("rule", REDUCTIONS, ids=lambda rule: rule.__name__)
def test_reductions_keep_nothing_beyond_their_input_either(rule):
    assert of_tensorflow(rule, tf.constant(X)) == 0
    assert of_torch(rule, torch.tensor(X, requires_grad=True)) == 0


def test_the_measure_sees_what_is_kept():
    assert of_tensorflow(lambda x: tf.exp(x) * 2, tf.constant(X)) >= X.nbytes
    assert of_torch(lambda x: torch.exp(x) * 2, torch.tensor(X, requires_grad=True)) == X.nbytes


@pytest.mark.parametrize("host", ASK)
@pytest.mark.parametrize("name", TABLE)
def test_values_and_gradients_are_those_of_pytorch(name, host):
    rule, native, arrays = TABLE[name]
    (expected,), slopes = ASK["torch"](native, arrays, [GATE])
    (found,), gradients = ASK[host](rule, arrays, [GATE])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    for mine, theirs in zip(gradients, slopes):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("host", ASK)
@pytest.mark.parametrize("name", TABLE)
def test_half_precision_is_that_of_double_rounded(name, host):
    rule, _, arrays = TABLE[name]
    for dtype in ("float16", "bfloat16"):
        kind, roundoff = DTYPES[dtype]
        given = [a.astype(kind) for a in arrays]
        exact = [np.asarray(a, np.float64) for a in given]
        (expected,), slopes = ASK[host](rule, exact, [np.ones_like(X)])
        (found,), gradients = ASK[host](rule, given, [np.ones_like(X)])
        for mine, theirs in zip([found, *gradients], [expected, *slopes]):
            room = 8 * roundoff * max(1.0, abs(theirs).max())
            np.testing.assert_allclose(np.asarray(mine, float), theirs, atol=room)


@pytest.mark.parametrize("name", TABLE)
def test_second_orders_are_those_of_pytorch(name):
    """Where a kernel of PyTorch pulls back, the formula takes over for the second order."""
    rule, native, arrays = TABLE[name]
    found = []
    for f in (rule, native):
        xs = [torch.tensor(a, requires_grad=True) for a in arrays]
        first = torch.autograd.grad(f(*xs), xs, torch.tensor(GATE), create_graph=True)
        total = sum((g * torch.cos(g)).sum() for g in first)
        found.append(torch.autograd.grad(total, xs, allow_unused=True))
    for mine, theirs in zip(*found):
        zero = torch.zeros(1, dtype=torch.float64)
        mine, theirs = (zero if g is None or not g.any() else g for g in (mine, theirs))
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("host", ASK)
def test_statistics_of_a_batch_are_given_and_have_gradients(host):
    (y, mean, variance), (dx,) = ASK[host](ops.batch_norm, [X], [0 * X, OFFSET, SCALE])
    np.testing.assert_allclose(mean, X.mean(0))
    np.testing.assert_allclose(variance, X.var(0))
    np.testing.assert_allclose(y, (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5))
    np.testing.assert_allclose(dx, (OFFSET + 2 * SCALE * (X - X.mean(0))) / 8)


def test_a_large_mean_costs_a_norm_no_digits():
    x = np.float32(X[:, :4]) + np.float32(4096)
    exact = ops.layer_norm(x.astype(np.float64))
    for host in ASK:
        (y,), _ = ASK[host](ops.layer_norm, [x])
        np.testing.assert_allclose(y, exact, atol=4096 * 2.0**-22)


def test_an_empty_batch_is_normed_without_a_warning():
    x = torch.zeros(0, 3, requires_grad=True)
    y, mean, _ = ops.batch_norm(x)
    (dx,) = torch.autograd.grad(y.sum(), x)
    assert y.shape == dx.shape == x.shape
    assert mean.isnan().all()


def test_statistics_are_those_of_shapes_without_numbers():
    y, mean, variance = ops.batch_norm(torch.zeros(2, 3, device="meta"))
    assert (y.shape, mean.shape, variance.shape) == ((2, 3), (3,), (3,))
