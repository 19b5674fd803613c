"""Differences: their accuracy, their cost, and the noise they know."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from frameworks import EVERYWHERE, vjp

import pullback as pb
from pullback.errors import ExternalGradientError, OptionError
from pullback.wrapping.differences import Scheme
from pullback.wrapping.noise import POINTS, level

X = np.linspace(0.5, 2.0, 8)
MEASURING = 2 * POINTS  # evaluations that find the noise, once


def counted(function, **options):
    calls = []

    def f(x):
        calls.append(1)
        return function(x)

    return pb.external(f, output=lambda x: x, **options), calls


@pytest.mark.parametrize(("scheme", "cost"), [("central", 16), ("forward", 8), ("complex-step", 8)])
def test_the_cost_is_what_it_says(scheme, cost):
    f, calls = counted(np.sin, gradient=scheme)
    vjp("tensorflow", f, X)
    before = len(calls)
    vjp("tensorflow", f, X + 0.1)
    assert len(calls) - before == cost + 1  # and the value
    assert before <= cost + 1 + MEASURING


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scheme", ["central", "forward", "complex-step"])
@pytest.mark.parametrize("function", [np.sin, np.exp, lambda x: 1e6 * x**3, lambda x: 1e-8 / x])
def test_a_gradient_is_as_accurate_as_its_scheme_says(dtype, scheme, function):
    f = pb.external(function, output=lambda x: x, gradient=scheme)
    x = X.astype(dtype)
    _, (dx,) = vjp("tensorflow", f, x)
    exact = np.diag(
        jax.jacfwd(lambda x: {np.sin: jnp.sin, np.exp: jnp.exp}.get(function, function)(x))(jnp.asarray(x))
    )
    accuracy = Scheme(scheme).accuracy(2.0**-53 if dtype == np.float64 else 2.0**-24)
    assert np.max(np.abs(dx - exact)) <= max(accuracy, 1e-6) * np.max(np.abs(exact))


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e9])
def test_steps_follow_the_size_of_the_argument(size):
    f = pb.external(lambda x: (x / size) ** 2, output=lambda x: x, gradient="central")
    _, (dx,) = vjp("tensorflow", f, X * size)
    np.testing.assert_allclose(dx * size, 2 * X, rtol=1e-8)


def noisy(size):
    """A function with a rounding of that size, as a solver that stops early has."""
    return lambda x: np.round(np.sin(x) / size) * size


@pytest.mark.parametrize("size", [1e-8, 1e-5, 1e-3])
def test_steps_know_the_noise(size):
    f = pb.external(noisy(size), output=lambda x: x, gradient="central")
    _, (dx,) = vjp("tensorflow", f, X)
    usual = pb.external(noisy(size), output=lambda x: x, gradient="central", step=5e-6)
    _, (worse,) = vjp("tensorflow", usual, X)
    error = np.max(np.abs(dx - np.cos(X)))
    assert error < 10 * size ** (2 / 3)
    assert error < np.max(np.abs(worse - np.cos(X))) / 4


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1.0])
def test_the_noise_of_a_table_is_measured(size):
    rng = np.random.default_rng(0)
    t = np.arange(POINTS + 1)[:, None] * 1e-8
    measured = level(np.sin(t) * 100 + size * rng.normal(size=(POINTS + 1, 400)))
    assert 0.5 < measured / (size * 20) < 2  # of four hundred columns


def test_spsa_is_right_on_average_and_the_same_for_the_same_seed():
    def f(samples, seed=0):
        g = pb.external(
            lambda x: np.sin(x).sum(),
            output=lambda x: x.replace(shape=()),
            gradient="spsa",
            samples=samples,
            seed=seed,
        )
        return vjp("tensorflow", g, X)[1][0]

    np.testing.assert_array_equal(f(2), f(2))
    assert not np.array_equal(f(2), f(2, seed=1))
    rough, fine = (np.linalg.norm(f(n) - np.cos(X)) for n in (4, 4096))
    assert fine < 0.1
    assert fine < rough / 4


def test_spsa_says_that_it_is_an_estimate():
    f = pb.external(lambda x: x, output=lambda x: x, gradient="spsa", samples=3)
    assert f.rule.intent.kind == "differs"
    assert "3 samples" in f.rule.intent.reason
    f.pullback(lambda dy: dy)
    assert f.rule.intent.kind == "exact"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (np.abs, "real numbers"),
        (lambda x: x * np.conj(x), "disagree"),
        (lambda x: np.where(np.real(x) > 1, x, np.abs(x) + 0 * x), "disagree"),
        (lambda x: np.asarray(x.real), "real numbers"),
    ],
)
def test_the_complex_step_is_verified_first(function, words):
    f = pb.external(function, output=lambda x: x, gradient="complex-step")
    with pytest.raises(ExternalGradientError, match=words):
        vjp("tensorflow", f, X - 1.2)


def test_the_complex_step_refuses_complex_arguments():
    f = pb.external(lambda z: z**2, output=lambda z: z, gradient="complex-step")
    with pytest.raises(ExternalGradientError, match="complex argument"):
        vjp("tensorflow", f, np.array([1j]))


def test_forward_mode_is_a_difference_along_the_tangent():
    f, calls = counted(np.sin, gradient="central")
    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(X**2)) as accumulator:
        y = f(x)
    np.testing.assert_allclose(accumulator.jvp(y), np.cos(X) * X**2, rtol=1e-8)
    assert len(calls) <= 1 + 2 + MEASURING


# ── sparsity ─────────────────────────────────────────────────────────────────────────────────────────────


def laplacian(x):
    padded = np.pad(x, 1)
    return padded[:-2] * padded[2:] - 2 * x**2


def banded(x):
    n = x.size
    return scipy.sparse.diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(n, n))


@pytest.mark.parametrize(("scheme", "cost"), [("central", 6), ("forward", 3), ("complex-step", 3)])
def test_a_banded_jacobian_of_ten_thousand_costs_a_few_evaluations(scheme, cost):
    f, calls = counted(laplacian, gradient=scheme, sparsity=banded)
    x = np.random.default_rng(1).normal(size=10_000)
    dy = np.random.default_rng(2).normal(size=10_000)
    vjp("tensorflow", f, x, cotangent=dy)
    before = len(calls)
    _, (dx,) = vjp("tensorflow", f, x, cotangent=dy)
    assert len(calls) - before == cost + 1
    padded = np.pad(x, 1)
    exact = -4 * x * dy
    exact[1:] += (dy * padded[:-2])[:-1] * 0 + (dy[:-1] * padded[:-2][:-1])
    exact[:-1] += dy[1:] * padded[2:][1:]
    assert np.max(np.abs(dx - exact)) < (1e-5 if scheme == "forward" else 1e-7)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_a_pattern_may_be_any_matrix(make):
    pattern = make(np.tril(np.ones((8, 8))))
    f = pb.external(lambda x: np.cumsum(x**2), output=lambda x: x, gradient="central", sparsity=pattern)
    _, (dx,) = vjp("tensorflow", f, X)
    np.testing.assert_allclose(dx, 2 * X * np.arange(8, 0, -1), rtol=1e-8)


def test_a_pattern_of_another_shape_is_refused():
    f = pb.external(np.sin, output=lambda x: x, gradient="central", sparsity=np.eye(3))
    with pytest.raises(OptionError, match=r"\(8, 8\)"):
        vjp("tensorflow", f, X)


# ── a pattern that is not true ───────────────────────────────────────────────────────────────────────────


def shifted(x):
    return x**2 + np.roll(x, 1)


@pytest.mark.parametrize("scheme", ["central", "forward", "complex-step"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [None, 1e-3])
def test_a_pattern_that_misses_entries_is_refused_and_an_entry_named(scheme, dtype, step):
    f = pb.external(shifted, output=lambda x: x, gradient=scheme, step=step, sparsity=np.eye(8))
    for _ in range(2):  # and it stays refused
        with pytest.raises(ExternalGradientError, match=r"8 of 8 rows; row 0 depends on column 7.*`x\[7\]`"):
            vjp("tensorflow", f, X.astype(dtype))


@pytest.mark.parametrize(("framework", "compiled"), EVERYWHERE)
def test_a_pattern_that_is_not_true_is_refused_everywhere(framework, compiled):
    def g(x, y):
        return x**2 + y[2] * np.eye(8)[3]

    pattern = np.concatenate([np.eye(8), np.zeros((8, 4))], axis=1)
    f = pb.external(g, output=lambda x: x, gradient="central", sparsity=pattern)
    with pytest.raises(Exception, match=r"1 of 8 rows; row 3 depends on column 10, which is `y\[2\]`"):
        vjp(framework, f, X, X[:4], compiled=compiled)


def test_a_pattern_is_confirmed_in_a_map():
    f = pb.external(shifted, output=lambda x: x, gradient="central", sparsity=np.eye(8))
    with jax.enable_x64(True), pytest.raises(ExternalGradientError, match="sparsity= misses entries"):
        jax.vmap(jax.grad(lambda x: f(x).sum()))(jnp.stack([X, 2 * X]))


def test_one_missing_entry_among_ten_thousand_rows_is_seen():
    def g(x):
        y = x**2
        y[5000] += 0.1 * x[3]
        return y

    f = pb.external(g, output=lambda x: x, gradient="central", sparsity=lambda x: scipy.sparse.eye(x.size))
    with pytest.raises(ExternalGradientError, match=r"1 of 10000 rows; row 5000 depends on column 3, "):
        vjp("tensorflow", f, np.linspace(0.5, 2.0, 10_000))


def test_a_pattern_is_confirmed_again_at_the_tenth_gradient():
    """It may be true at first and not elsewhere."""
    f, calls = counted(
        lambda x: x**2 + np.roll(np.maximum(x - 5, 0), 1), gradient="central", sparsity=np.eye(8)
    )
    costs = []
    for _ in range(9):
        before = len(calls)
        vjp("tensorflow", f, X)
        costs.append(len(calls) - before)
    assert set(costs[1:]) == {3}  # the value and two more
    with pytest.raises(ExternalGradientError, match="sparsity= misses entries"):
        vjp("tensorflow", f, X + 5)


TRUE = {
    "a kink": (np.abs, np.eye(3)),
    "a clipped value": (lambda x: np.maximum(x, 0), np.eye(3)),
    "a tie": (lambda x: np.full(3, x.max(), x.dtype), np.ones((3, 3))),
    "a square": (np.square, np.eye(3)),
    "a cube": (lambda x: x**3, np.eye(3)),
    "a product": (lambda x: np.full(3, x.prod(), x.dtype), np.ones((3, 3))),
    "a constant": (lambda x: np.ones_like(x), np.eye(3)),
    "tiny values": (lambda x: x**2 * x.dtype.type(1e-30), np.eye(3)),
    "six digits": (lambda x: np.array([float(f"{v:.6g}") for v in np.sin(x)], x.dtype), np.eye(3)),
    "many sizes": (lambda x: x * np.array([1e-9, 1, 1e9], x.dtype), np.eye(3)),
    "a steep one": (lambda x: np.exp(20 * x), np.eye(3)),
    "few digits": (lambda x: (1e8 + np.cumsum(x)) - 1e8, np.tri(3)),
}
POINTS_OF = [np.zeros(3), np.ones(3), np.array([0.0, 1.0, -2.0]), np.array([0.3, -0.7, 1.1])]


@pytest.mark.parametrize("scheme", ["central", "forward"])
@pytest.mark.parametrize("step", [None, 1e-3])
@pytest.mark.parametrize("name", TRUE)
def test_a_pattern_that_is_true_is_never_refused(scheme, step, name):
    function, pattern = TRUE[name]
    for dtype in (np.float64, np.float32):
        for x in POINTS_OF:
            f = pb.external(
                lambda x: np.asarray(function(x), x.dtype),
                output=lambda x: x,
                gradient=scheme,
                step=step,
                sparsity=pattern,
            )
            vjp("tensorflow", f, x.astype(dtype))


@pytest.mark.parametrize("function", [np.square, lambda x: x**3, lambda x: np.full(3, x.prod()), np.sin])
def test_an_analytic_function_is_never_refused(function):
    for x in POINTS_OF:
        f = pb.external(function, output=lambda x: x, gradient="complex-step")
        vjp("tensorflow", f, x)


def test_noise_that_a_round_number_hides_is_measured_elsewhere():
    f = pb.external(TRUE["six digits"][0], output=lambda x: x, gradient="central", sparsity=np.eye(3))
    _, (dx,) = vjp("tensorflow", f, np.ones(3))
    np.testing.assert_allclose(dx, np.cos(np.ones(3)), rtol=2e-3)
