"""Solvers that stop at a tolerance: the exact solution's gradient is not called wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from torch.autograd.function import once_differentiable

import pullback as pb
from pullback import hosts, view
from pullback.checker import check_subject
from pullback.checker.numeric import derivative_test
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings

LIMIT = 60  # iterations, where a solver does not converge
FACTORS = pytest.mark.parametrize("factor", [1.0, 2.0, -1.0])


def fixed_point(a, tolerance):
    x, last = 0.5, np.inf
    while abs(x - last) > tolerance:
        x, last = np.cos(a * x), x
    return x


def bisection(a, tolerance):
    low, high = 0.0, 1.0
    while high - low > tolerance:
        middle = (low + high) / 2
        low, high = (middle, high) if middle < np.cos(a * middle) else (low, middle)
    return (low + high) / 2


def slope(a):
    x = fixed_point(a, 1e-13)
    s = -np.sin(a * x)
    return s * x / (1 - s * a)


def verdicts(subject_of, solver, tolerance, factor):
    for seed, a in enumerate(np.linspace(0.7, 1.05, 6)):
        subject = subject_of(
            lambda a: solver(float(a), tolerance), lambda a, d: factor * d * slope(float(a)), a
        )
        settings = Settings(shipped=2.0**-24)
        yield derivative_test(Problem.of(subject), np.random.default_rng(seed), settings).verdict


@FACTORS
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6])
@pytest.mark.parametrize("solver", [fixed_point, bisection])
def test_jumps_of_a_solver_are_no_fault_of_its_gradient(subject_of, solver, tolerance, factor):
    found = set(verdicts(subject_of, solver, tolerance, factor))
    assert found == {"wrong"} if factor != 1 else "wrong" not in found


@pytest.mark.parametrize("jump", [1e-7, 1e-5])
def test_a_wrong_gradient_is_not_lost_among_jumps_that_are_smaller(subject_of, jump):
    # The jumps are too small to make up for a slope that is off by a hundredth.
    subject = subject_of(
        lambda x: np.sin(x) + jump * np.floor(40 * x), lambda x, d: 1.01 * d * np.cos(x), 0.813
    )
    assert derivative_test(Problem.of(subject), np.random.default_rng(0), Settings()).verdict == "wrong"


def test_many_kinks_are_no_jumps(subject_of):
    knots, slopes = np.linspace(0.5, 1.5, 200), np.random.default_rng(0).normal(size=200) * 0.01

    def bent(x):
        return x + (slopes * np.maximum(0, x - knots)).sum()

    subject = subject_of(bent, lambda x, d: 1.002 * d * (1 + (slopes * (x > knots)).sum()), 1.003)
    assert derivative_test(Problem.of(subject), np.random.default_rng(0), Settings()).verdict == "wrong"


def torch_rule(factor):
    class FixedPoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            x, last = torch.full_like(a, 0.5), torch.zeros_like(a)
            for _ in range(LIMIT):
                x, last = torch.cos(a * x), x
                if (x - last).abs().max() <= 1e-6:
                    break
            ctx.save_for_backward(a, x)
            return x

        @staticmethod
        def backward(ctx, d):
            a, x = ctx.saved_tensors
            return factor * d * -torch.sin(a * x) * x / (1 + torch.sin(a * x) * a)

    return FixedPoint.apply


def tensorflow_rule(factor):
    @tf.custom_gradient
    def f(a):
        def goes_on(x, last):
            return tf.reduce_max(tf.abs(x - last)) > 1e-6

        start = (tf.fill(tf.shape(a), tf.constant(0.5, a.dtype)), tf.zeros_like(a))
        x, _ = tf.while_loop(goes_on, lambda x, last: (tf.cos(a * x), x), start, maximum_iterations=LIMIT)
        return x, lambda d: factor * d * -tf.sin(a * x) * x / (1 + tf.sin(a * x) * a)

    return f


def jax_rule(factor):
    @jax.custom_vjp
    def f(a):
        def goes_on(state):
            x, last, count = state
            return (jnp.abs(x - last).max() > 1e-6) & (count < LIMIT)

        def step(state):
            x, _, count = state
            return jnp.cos(a * x), x, count + 1

        return jax.lax.while_loop(goes_on, step, (jnp.full_like(a, 0.5), jnp.zeros_like(a), 0))[0]

    def back(kept, d):
        a, x = kept
        return (factor * d * -jnp.sin(a * x) * x / (1 + jnp.sin(a * x) * a),)

    f.defvjp(lambda a: (f(a), (a, f(a))), back)
    return f


HOSTS = {
    "PyTorch": (torch_rule, torch.tensor),
    "TensorFlow": (tensorflow_rule, tf.constant),
    "JAX": (jax_rule, jnp.array),
}


QUICK = {"seed": 0, "order": 1, "probes": ["derivative"], "xla": False, "export": False}


@pytest.mark.parametrize(("host", "factor"), [*((host, 1.0) for host in HOSTS), ("PyTorch", 2.0)])
def test_a_solver_in_the_dtype_that_ships(host, factor):
    rule, tensor = HOSTS[host]
    report = pb.check(rule(factor), tensor([0.9, 0.75]), own_points=False, **QUICK)
    assert report.verdict == ("right" if factor == 1 else "wrong"), report


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_where_a_solver_does_not_converge_is_no_verdict(factor):
    report = pb.check(jax_rule(factor), jnp.array([0.9, 0.75]), **QUICK)
    assert report.verdict == ("right" if factor == 1 else "wrong"), report
    notes = [f.sentence for f in report.findings if f.verdict == "note"]
    assert factor != 1 or any("need not have come to its end" in said for said in notes), notes


def steps(a, b, count=40):
    """Integrate y' = sin(a·y) from b."""
    y = b
    for _ in range(count):
        middle = y + 0.025 * np.sin(a * y)
        y = y + 0.05 * np.sin(a * middle)
    return y


def exact(x, d, hidden=0.0, branch=0.0):
    """Give its gradient by differences, and mistakes that the given point does not show."""
    a, b = x
    h = 1e-20
    slope = np.array([steps(a + 1j * h, b).imag, steps(a, b + 1j * h).imag]) / h
    return d * (slope + hidden * b * np.array([1.0, 0.0]) + branch * (a > 2.0))


@pytest.mark.parametrize("mistake", [{"hidden": 0.3}, {"branch": 0.3}])
def test_a_mistake_in_a_loop_that_the_given_point_hides_is_found(subject_of, mistake):
    """A state of zeros, and a branch: the error is there at once, or all of it is."""
    settings = Settings(seed=1, probes=("derivative",))
    for wrong in ({}, mistake):
        subject = subject_of(
            lambda x: steps(x[0], x[1]),
            lambda x, d, wrong=wrong: exact(x, d, **wrong),
            np.array([0.7, 0.0 if "hidden" in mistake else 0.4]),
            repeats=lambda inputs: 40,
        )
        assert check_subject(subject, settings).verdict == ("wrong" if wrong else "right")


def loop(xp, count):
    def run(x):
        for _ in range(count):
            x = xp.sin(x)
        return x

    return run


@pytest.mark.parametrize("count", [2, 40])
@pytest.mark.parametrize("host", HOSTS)
def test_a_loop_is_told_from_a_formula(host, count):
    xp = {"PyTorch": torch, "TensorFlow": tf, "JAX": jnp}[host]
    x = HOSTS[host][1]([0.5, 1.0])
    subject = view.subject_of(hosts.of(x), loop(xp, count), (x,), {})
    assert subject.repeats(subject.inputs) == count


class Integrated(torch.autograd.Function):
    """Integrate y' = tanh(y·w), and its adjoint beside it, backwards."""

    @staticmethod
    def forward(ctx, y, w):
        for _ in range(50):
            (y,) = _stepped(lambda y: (torch.tanh(y @ w),), (y,))
        ctx.save_for_backward(y, w)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, a):
        y, w = ctx.saved_tensors

        def slopes(y, a, g):
            t = torch.tanh(y @ w)
            s = (1 - t * t) * a
            return -t, s @ w.T, y.T @ s

        state = (y, a, torch.zeros_like(w))
        for _ in range(50):
            state = _stepped(slopes, state)
        return state[1:]


def _stepped(slopes, state, h=0.02):
    """Take one step of Runge and Kutta's."""
    k = [slopes(*state)]
    for part in (h / 2, h / 2, h):
        k.append(slopes(*(u + part * d for u, d in zip(state, k[-1]))))
    return tuple(u + h / 6 * (a + 2 * b + 2 * c + d) for u, a, b, c, d in zip(state, *k))


def test_a_loop_whose_error_few_entries_show_is_no_verdict_far_away():
    torch.manual_seed(0)
    y, w = torch.randn(2, 3) / 2, torch.randn(3, 3) / 2
    report = pb.check(Integrated.apply, y, w, **{**QUICK, "seed": 1})
    assert report.verdict == "right", report
    assert any("less exact" in f.sentence for f in report.findings)
