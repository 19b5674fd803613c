"""Differences: their accuracy, their cost, and the noise they know."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from frameworks import vjp

import pullback as pb
from pullback.errors import ExternalGradientError, OptionError
from pullback.external.differences import Scheme
from pullback.external.noise import POINTS, level

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
