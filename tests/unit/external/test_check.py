"""The checker judges external rules as any other: right ones pass, wrong ones are named."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb
from pullback.checker import check
from pullback.checker.probes import derivative

X = tf.constant([1.0, 2.0], tf.float64)
Y = tf.constant([0.3, 0.4], tf.float64)


def value(x, y):
    return x**2 * np.sin(y)


@pytest.mark.parametrize("scheme", ["central", "forward", "complex-step"])
def test_a_scheme_passes_at_the_accuracy_it_claims(scheme):
    f = pb.external(value, output=lambda x: x, gradient=scheme)
    report = check(f, X, Y, seed=1, export=False)
    assert report.verdict == "right"
    assert report.capabilities["forward"] == "yes"
    assert report.capabilities["XLA"] == "refused"
    assert report.capabilities["second order"] == "refused"


def test_a_scheme_is_reported_no_more_exact_than_it_is():
    f = pb.external(value, output=lambda x: x, gradient="forward")
    report = check(f, X, Y, seed=1, export=False)
    assert 1e-10 < report.resolution < 1e-6


def test_a_coarse_step_claims_less():
    f = pb.external(value, output=lambda x: x, gradient="forward", step=1e-3)
    report = check(f, X, Y, seed=1, export=False, own_points=False)
    assert report.verdict == "right"
    assert 1e-5 < report.resolution < f.rule.accuracy < 1e-2


def test_an_adjoint_with_a_wrong_sign_is_named():
    f = pb.external(value, output=lambda x: x)
    f.pullback(lambda dy, x, y: (2 * x * np.sin(y) * dy, -(x**2) * np.cos(y) * dy))
    report = check(f, X, Y, seed=1, export=False)
    assert report.verdict == "wrong"
    assert [finding.cause for finding in report.findings if finding.verdict == "wrong"] == ["sign"]


def test_second_order_by_differences_passes():
    f = pb.external(value, output=lambda x: x, second="central")
    f.pullback(lambda dy, x, y: (2 * x * np.sin(y) * dy, x**2 * np.cos(y) * dy))
    report = check(f, X, Y, seed=1, export=False)
    assert report.verdict == "right"
    assert report.capabilities["second order"] == "yes"
    assert report.capabilities["forward"] == "yes"


def test_points_of_the_checkers_own_are_left_out_when_a_function_is_slow(monkeypatch):
    monkeypatch.setattr(derivative, "SHARE", 1e12)  # of the budget, for own points
    f = pb.external(value, output=lambda x: x)
    f.pullback(lambda dy, x, y: (2 * x * np.sin(y) * dy, x**2 * np.cos(y) * dy))
    report = check(f, X, Y, seed=1, export=False, probes=["derivative"])
    assert report.verdict == "right"
    assert any("no more were tried" in finding.sentence for finding in report.findings)
    assert report.forwards < 80


def test_an_adjoint_of_finite_accuracy_claims_no_more():
    def rough(dy, x):
        return 2 * x * dy * (1 + 1e-8 * np.sin(1e3 * dy))

    for accuracy, verdict in ((1e-6, "right"), (None, "wrong")):
        f = pb.external(lambda x: x**2, output=lambda x: x, accuracy=accuracy)
        f.pullback(rough)
        assert check(f, X, seed=1, export=False, own_points=False).verdict == verdict
