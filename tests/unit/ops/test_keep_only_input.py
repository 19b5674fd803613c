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
from pullback.errors import OptionError, UnsupportedInputError

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
    kept = of_torch(rule, *[torch.tensor(a, requires_grad=True) for a in arrays])
    # PyTorch's own norms keep statistics: two numbers a row, or with those that are given four a channel
    assert kept == {"layer_norm": 2 * 8 * 8, "batch_norm": 4 * 6 * 8}.get(name, 0)
    halves = [torch.tensor(a, dtype=torch.float16, requires_grad=True) for a in arrays]
    assert of_torch(rule, *halves) == 0


@pytest.mark.parametrize("name", ["gelu", "gelu tanh", "silu", "mish", "layer_norm", "batch_norm"])
def test_pytorchs_own_operation_stands_in_the_place_of_a_rule(name):
    rule, native, arrays = TABLE[name]
    node = type(native(*[torch.tensor(a, requires_grad=True) for a in arrays]).grad_fn)
    for dtype in (torch.float64, torch.float32):
        given = [torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays]
        for _ in range(2):  # also where a shorter way is known
            assert type(rule(*given).grad_fn) is node
        halves = [x.detach().half().requires_grad_() for x in given]
        assert type(rule(*halves).grad_fn) is not node
    xs = [torch.tensor(a) for a in arrays]
    mapped = torch.func.vmap(rule)(torch.stack([xs[0], xs[0] + 1]), *[torch.stack([x, x]) for x in xs[1:]])
    torch.testing.assert_close(mapped[0], native(*xs))
    compiled = torch.compile(rule, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*xs), native(*xs))


def test_what_is_settled_of_a_call_is_settled_for_its_shapes_and_dtypes():
    x = torch.tensor(X, requires_grad=True)
    with torch.no_grad():
        wide = ops.layer_norm(x[:, :3], x[0, :3])
        assert ops.layer_norm(x[:, :5], x[0, :5]).shape == (8, 5)
        torch.testing.assert_close(ops.layer_norm(x[:, :3], x[0, :1]), wide / x[0, :3] * x[0, 0])
    half = ops.layer_norm(x.detach().half().requires_grad_())
    assert type(half.grad_fn) is not type(ops.layer_norm(x).grad_fn)


def test_what_stands_in_the_place_of_a_rule_refuses_what_the_rule_does():
    x = torch.ones(2, 3)
    for wrong in (
        lambda: ops.gelu(x, approximate="tan"),
        lambda: ops.layer_norm(x, eps=-1.0),
        lambda: ops.layer_norm(x, axis=2),
        lambda: ops.batch_norm(x, axis=2),
    ):
        with pytest.raises(OptionError):
            wrong()
    with pytest.raises(TypeError, match="silu"):
        ops.silu(x, x)
    with pytest.raises(UnsupportedInputError):
        ops.silu(x.to_sparse())


@pytest.mark.parametrize("name", ["gelu", "gelu tanh", "silu", "mish"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_second_order_in_half_precision_is_that_of_double_rounded(name, dtype):
    """PyTorch's own has lost some digits, and that of mish is NaN in float16."""
    rule = TABLE[name][0]

    def second(x):
        (slope,) = torch.autograd.grad(rule(x).sum(), x, create_graph=True)
        return torch.autograd.grad(slope.sum(), x)[0].double()

    x = torch.linspace(-12, 12, 97).to(dtype)
    found, exact = second(x.clone().requires_grad_()), second(x.double().requires_grad_())
    assert (found - exact).abs().max() < torch.finfo(dtype).eps


@pytest.mark.parametrize("host", ["tensorflow", "jax"])
def test_gelu_has_its_digits_where_the_error_function_is_one(host):
    for dtype in (np.float32, np.float64):
        x = np.linspace(-12, -5, 15).astype(dtype)
        (y,), (slope,) = ASK[host](ops.gelu, [x])
        for found, true in (
            (y, [v * mp.ncdf(v) for v in map(float, x)]),
            (slope, [mp.ncdf(v) + v * mp.npdf(v) for v in map(float, x)]),
        ):
            np.testing.assert_allclose(found, np.array(true, float), rtol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("host", ["tensorflow", "jax"])
@pytest.mark.parametrize("name", ["gelu", "gelu tanh", "silu", "mish"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_activations_have_their_limits_at_infinity_and_everywhere_on_the_way(name, host, dtype):
    rule, kind = TABLE[name][0], DTYPES[dtype][0]
    large = np.array([1e4, 1e20, 3e38, np.inf]) if dtype != "float16" else np.array([1e4, 6e4, np.inf])
    x = np.concatenate([-large, large, [np.nan]]).astype(kind)
    (y,), (slope,) = ASK[host](rule, [x])
    expected = np.maximum(x.astype(float), 0)
    np.testing.assert_array_equal(y.astype(float), expected)
    np.testing.assert_array_equal(slope.astype(float), np.where(np.isnan(x), np.nan, expected > 0))
    with np.errstate(invalid="ignore"):
        values = rule(x) if dtype in ("float64", "float32") else expected
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("host", ["tensorflow", "jax"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_mish_is_right_to_a_few_units(host, dtype):
    x = np.linspace(-30, 30, 121).astype(dtype)
    (y,), (slope,) = ASK[host](ops.mish, [x])
    with mp.workdps(40):

        def mish(v):
            return v * mp.tanh(mp.log1p(mp.exp(v)))

        points = [mp.mpf(float(v)) for v in x]
        values, slopes = (np.array([f(v) for v in points], float) for f in (mish, lambda v: mp.diff(mish, v)))
    np.testing.assert_allclose(y, values, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(slope, slopes, rtol=8 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


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


def test_statistics_that_pytorchs_kernel_leaves_have_all_derivatives():
    def statistics(x):
        _, mean, variance = ops.batch_norm(x, axis=1)
        return mean, variance

    x = torch.tensor(X[:4, :2], requires_grad=True)
    assert torch.autograd.gradcheck(statistics, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(statistics, x)
    single = torch.tensor(X[:1], requires_grad=True)  # PyTorch refuses a batch of one
    y, mean, variance = ops.batch_norm(single)
    assert torch.equal(mean, single[0])
    assert not variance.any()
    assert y.abs().max() < 1e-13


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
