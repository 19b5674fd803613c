"""The derivative test: three answers, flat cost, and no excuse for a wrong entry."""

import numpy as np
import pytest

from pullback.checker.numeric import derivative_test
from pullback.checker.oracle import disagreement
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings


def outcome(subject, seed=0):
    return derivative_test(Problem.of(subject), np.random.default_rng(seed), Settings())


@pytest.mark.parametrize("size", [100, 10_000, 1_000_000])
def test_the_cost_of_a_pass_is_flat(subject_of, size):
    subject = subject_of(np.sin, lambda x, d: d * np.cos(x), np.random.default_rng(0).normal(size=size))
    assert outcome(subject).verdict == "right"
    assert subject.counter.forwards <= 60
    assert subject.counter.pullbacks <= 12


@pytest.mark.parametrize("factor", [1 + 1e-5, 1.0005, 2, -1, 0])
def test_a_factor_is_found(subject_of, factor):
    subject = subject_of(np.tanh, lambda x, d: factor * d * (1 - np.tanh(x) ** 2), np.linspace(-1, 1, 7))
    assert outcome(subject).verdict == "wrong"


@pytest.mark.parametrize("choice", [0.0, 0.3, 1.0])
def test_every_choice_at_a_kink_is_accepted(subject_of, choice):
    def pullback(x, d):
        return d * np.where(x == 0, choice, x > 0)

    found = outcome(subject_of(lambda x: np.maximum(x, 0), pullback, np.array([-1.0, 0.0, 2.0])))
    assert found.verdict == "right"
    assert found.edge


@pytest.mark.parametrize("choice", [-0.5, 1.5])
def test_a_value_outside_the_slopes_of_a_kink_is_wrong(subject_of, choice):
    def pullback(x, d):
        return d * np.where(x == 0, choice, x > 0)

    assert (
        outcome(subject_of(lambda x: np.maximum(x, 0), pullback, np.array([-1.0, 0.0, 2.0]))).verdict
        == "wrong"
    )


def test_an_infinite_slope_is_undecided(subject_of):
    subject = subject_of(np.cbrt, lambda x, d: 0 * d, np.zeros(3))
    assert outcome(subject).verdict == "undecided"


def test_a_coarse_output_is_not_called_wrong(subject_of):
    subject = subject_of(
        lambda x: (x + 1e4) - 1e4, lambda x, d: d, 1e-5 * np.random.default_rng(0).normal(size=9)
    )
    assert outcome(subject).verdict != "wrong"


@pytest.mark.parametrize("seed", range(10))
def test_float32_right_rules_are_never_called_wrong(subject_of, seed):
    x = np.random.default_rng(seed).normal(size=50).astype(np.float32)

    def huber(x):
        return np.where(np.abs(x) < 1, x * x / 2, np.abs(x) - np.float32(0.5))

    subject = subject_of(huber, lambda x, d: d * np.clip(x, -1, 1), x)
    assert outcome(subject, seed).verdict != "wrong"


def test_float16_sees_a_wrong_factor_and_passes_the_right_one(subject_of):
    x = np.random.default_rng(0).normal(size=50).astype(np.float16)
    right = subject_of(np.sin, lambda x, d: d * np.cos(x), x)
    wrong = subject_of(np.sin, lambda x, d: np.float16(1.2) * d * np.cos(x), x)
    assert outcome(right).verdict == "right"
    assert outcome(wrong).verdict == "wrong"


def test_complex_gradients_use_the_real_pairing(subject_of):
    z = np.array([1 + 2j, -0.5 + 1j, 3j])
    assert outcome(subject_of(np.square, lambda z, d: d * np.conj(2 * z), z)).verdict == "right"
    assert outcome(subject_of(np.square, lambda z, d: d * 2 * z, z)).verdict == "wrong"


def test_gradients_of_any_size_are_compared_without_overflow():
    claimed, true = np.array([1e160, 1e155]), np.array([1e160, 2e155])
    assert disagreement(claimed, true, 2.0**-53).tolist() == [False, True]
    assert disagreement(np.zeros(2), np.zeros(2), 2.0**-53).tolist() == [False, False]
