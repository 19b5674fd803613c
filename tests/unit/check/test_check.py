"""The whole check on NumPy subjects: no framework is imported, and reports are data."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import pullback as pb
from pullback.checker import Settings, check_subject
from pullback.checker.cause import causes
from pullback.checker.probe import probes
from pullback.errors import OptionError, WrongGradientError

X = np.random.default_rng(0).normal(size=6)
QUICK = Settings(seed=1, probes=("contract", "derivative", "linearity"))


def test_no_framework_is_imported():
    code = (
        "import pullback.checker, sys; print([m for m in ('tensorflow', 'torch', 'jax') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("order", [0, 3, None, "2"])
def test_an_order_that_is_not_tested_is_refused(order):
    with pytest.raises(OptionError, match="1 or 2, the highest derivative"):
        pb.check(np.sin, X, order=order)


def test_the_package_offers_the_function():
    import pullback.checker

    assert pullback.checker.check is pb.check


def test_every_probe_and_cause_has_its_parts():
    assert all(callable(p.ask) and isinstance(p.rank, int) for p in probes().values())
    assert all(callable(m.search) and m.SLUG.lower() == m.SLUG for m in causes())
    expected = {"upstream-ignored", "sign", "constant-factor", "transposed", "inputs-swapped", "missing-term"}
    assert expected <= {m.SLUG for m in causes()}


def test_a_report_is_plain_data(subject_of):
    report = check_subject(subject_of(np.sin, lambda x, d: d * np.cos(x), X), QUICK)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["verdict"] == "right"
    assert data["schema"] == 1
    assert 0 < data["resolution"] < 1e-6


def test_a_wrong_gradient_raises_with_its_cause(subject_of):
    report = check_subject(subject_of(np.sin, lambda x, d: -d * np.cos(x), X), QUICK)
    assert report.causes == ["sign"]
    with pytest.raises(WrongGradientError, match="wrong sign"):
        report.raise_if_wrong()


def test_a_failure_without_a_measured_number_raises_too(subject_of):
    report = check_subject(subject_of(np.sin, lambda x, d: (d * np.cos(x))[:1], X), QUICK)
    assert report.failures[0].measured is None
    with pytest.raises(WrongGradientError, match="shape"):
        report.raise_if_wrong()


def test_the_same_seed_gives_the_same_report(subject_of):
    subject = subject_of(np.tanh, lambda x, d: d * (1 - x * x), X)
    first, second = (check_subject(subject, QUICK).to_dict()["findings"] for _ in range(2))
    assert first == second


def test_own_points_find_what_the_given_point_hides(subject_of):
    subject = subject_of(np.abs, lambda x, d: d, np.abs(X))
    rule = replace(subject, is_rule=True, body_pullback=lambda inputs, dy: (dy[0] * np.sign(inputs[0]),))
    report = check_subject(rule, QUICK)
    assert report.verdict == "wrong"
    assert report.causes == ["wrong-region"]
    assert "x < 0" in report.failures[0].sentence


def test_what_only_the_arguments_promise_is_a_note(subject_of):
    report = check_subject(subject_of(np.abs, lambda x, d: d, np.abs(X)), QUICK)
    assert report.verdict == "right"
    assert any("promise: `x` is not negative" in f.sentence for f in report.findings)


def test_own_points_can_be_left_out(subject_of):
    quiet = Settings(seed=1, probes=("derivative",), own_points=False)
    assert check_subject(subject_of(np.abs, lambda x, d: d, np.abs(X)), quiet).verdict == "right"


def test_one_entry_among_many_is_named_without_autodiff(subject_of):
    mask = np.ones(100_000)
    mask[4321] = 0
    x = np.random.default_rng(0).normal(size=mask.size)
    only = Settings(seed=1, probes=("derivative",), own_points=False)
    report = check_subject(subject_of(np.sin, lambda x, d: d * np.cos(x) * mask, x), only)
    assert report.failures[0].where == "x[4321]"


def test_a_wrong_shape_is_a_matter_of_contract(subject_of):
    report = check_subject(subject_of(lambda x: x + np.zeros((3, 1)), lambda x, d: d, X), QUICK)
    assert report.causes == ["broadcast-not-reduced"]
    assert "axis 0" in report.failures[0].sentence


@pytest.mark.parametrize("x", [np.zeros((0, 3)), np.array([1.0, np.nan])])
def test_inputs_that_decide_nothing_are_undecided(subject_of, x):
    assert check_subject(subject_of(np.sin, lambda x, d: d * np.cos(x), x), QUICK).verdict == "undecided"
