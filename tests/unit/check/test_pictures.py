"""What a page draws of a check: the worst entries are in it, its size is bounded, and nobody pays unasked."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from pullback.checker.budget import Spent
from pullback.checker.inquiry import check_subject
from pullback.checker.picture import MOST
from pullback.checker.settings import Settings
from pullback.rule import Intent
from pullback.view.subject import Subject

ASKED = Settings(seed=1, order=1, probes=("derivative",), pictures=True, own_points=False)


def subject(x, slope, f=np.square, body=None, **more):
    """Make a subject of an elementwise function and the slope that its rule claims."""

    def plain(inputs, cotangents):
        return (cotangents[0] * body(inputs[0]),)

    return Subject(
        "f",
        (x,),
        ("x",),
        (True,),
        lambda inputs: (np.asarray(f(inputs[0])),),
        lambda inputs, cotangents: (np.asarray(cotangents[0] * slope(inputs[0])),),
        body_pullback=None if body is None else plain,
        is_rule=True,
        **more,
    )


def pictures(subject, settings=ASKED):
    report = check_subject(subject, settings)
    text = json.dumps([dict(p) for p in report.pictures], allow_nan=False)  # they travel
    return report, {p["kind"]: p for p in json.loads(text)}


X = np.linspace(-2.0, 2.0, 12).reshape(3, 4) + 0.1


def one_wrong(x):
    slope = 2 * x
    slope.reshape(-1)[5] += 1
    return slope


@pytest.fixture(scope="module")
def wrong():
    return pictures(subject(X, one_wrong))


def test_pictures_are_made_only_where_somebody_asked(wrong):
    quiet, _ = pictures(subject(X, one_wrong), replace(ASKED, pictures=False))
    asked, drawn = wrong
    assert quiet.pictures == ()
    assert set(drawn) == {"scatter", "heat", "slice"}
    assert (quiet.forwards, quiet.findings) == (asked.forwards, asked.findings)


def test_the_scatter_names_the_entries_that_differ(wrong):
    report, drawn = wrong
    scatter = drawn["scatter"]
    assert report.verdict == "wrong"
    assert scatter["total"] == len(scatter["entries"]) == 12
    assert [scatter["entries"][i] for i in scatter["apart"]] == ["x[1, 1]"]
    right = [i for i in range(12) if i != 5]
    np.testing.assert_allclose(
        [scatter["claimed"][i] for i in right], [scatter["measured"][i] for i in right], rtol=1e-6
    )


def test_the_heat_map_is_hot_where_the_gradient_is_wrong(wrong):
    heat = wrong[1]["heat"]
    assert (heat["shape"], heat["rows"], heat["columns"]) == ([3, 4], list("012"), list("0123"))
    hot = [i for i, error in enumerate(heat["cells"]) if error > heat["noise"]]
    assert hot == [5]
    assert not heat["folded"]


def test_the_slice_goes_through_the_worst_entry_with_both_slopes(wrong):
    seen = wrong[1]["slice"]
    assert seen["entry"] == "x[1, 1]"
    assert seen["at"] == pytest.approx(X[1, 1])
    slopes = np.gradient(seen["values"], seen["steps"])
    nearest = int(np.argmin(np.abs(np.array(seen["steps"]) - seen["at"])))
    assert slopes[nearest] == pytest.approx(seen["measured"], rel=1e-2)
    assert abs(seen["claimed"] - seen["measured"]) > 0.4


def test_a_right_rule_has_no_entry_that_differs():
    report, drawn = pictures(subject(X, lambda x: 2 * x))
    assert report.verdict == "right"
    assert drawn["scatter"]["apart"] == []
    assert max(drawn["heat"]["cells"]) < drawn["heat"]["noise"]


def test_of_a_large_input_the_worst_entries_are_kept():
    x = np.random.default_rng(0).normal(size=(40, 50))

    def wrong(x):
        slope = 2 * x
        slope[17, 23] += 100
        return slope

    drawn = pictures(subject(x, wrong, body=lambda x: 2 * x))[1]
    scatter, heat = drawn["scatter"], drawn["heat"]
    assert scatter["total"] == 2000
    assert len(scatter["entries"]) <= MOST
    assert [scatter["entries"][i] for i in scatter["apart"]] == ["x[17, 23]"]
    assert len(heat["cells"]) <= MOST
    assert heat["folded"]
    hot = [i for i, error in enumerate(heat["cells"]) if error > heat["noise"]]
    assert len(hot) == 1
    row, column = divmod(hot[0], len(heat["columns"]))
    first, last = map(int, heat["rows"][row].split(" … "))
    assert first <= 17 <= last
    first, last = map(int, heat["columns"][column].split(" … "))
    assert first <= 23 <= last
    assert drawn["slice"]["entry"] == "x[17, 23]"


def test_a_large_input_that_only_differences_measure_is_sampled():
    x = np.random.default_rng(0).normal(size=(40, 50))
    drawn = pictures(subject(x, lambda x: 3 * x))[1]
    assert "heat" not in drawn
    assert 50 < len(drawn["scatter"]["entries"]) <= MOST
    assert len(drawn["scatter"]["apart"]) == len(drawn["scatter"]["entries"])


def softplus(x):
    with np.errstate(over="ignore"):
        return np.logaddexp(x, 0)


def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def naive(x):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.exp(x) / (1 + np.exp(x))


def test_stability_follows_forty_decades_against_autodiff():
    seen = pictures(subject(X, sigmoid, softplus, body=naive))[1]["stability"]
    assert (len(seen["at"]), seen["at"][0], seen["at"][-1]) == (82, -1e20, 1e20)
    lost = [x for x, slope in zip(seen["at"], seen["autodiff"]) if slope == "nan"]
    assert lost == [x for x in seen["at"] if x > 709]
    assert "nan" not in seen["claimed"]


MIXED = np.random.default_rng(3).normal(size=(12, 12))
MIXING = replace(
    subject(X, lambda x: 2 * x),
    forward=lambda inputs: ((MIXED @ inputs[0].reshape(-1)).reshape(3, 4),),
    pullback=lambda inputs, cotangents: ((MIXED.T @ cotangents[0].reshape(-1)).reshape(3, 4),),
    body_pullback=lambda inputs, cotangents: ((MIXED.T @ cotangents[0].reshape(-1)).reshape(3, 4),),
)


@pytest.mark.parametrize(
    "other",
    [
        subject(X, lambda x: 2 * x),
        replace(subject(X, lambda x: 2 * x, body=lambda x: 2 * x), is_rule=False),
        replace(subject(X, lambda x: 0 * x, body=lambda x: 2 * x), intent=Intent("differs", None, "meant")),
        MIXING,
    ],
    ids=["no-body", "no-rule", "differs", "not-elementwise"],
)
def test_stability_is_left_out_where_it_means_nothing(other):
    drawn = pictures(other)[1]
    assert "scatter" in drawn
    assert "stability" not in drawn


def test_a_second_order_failure_has_second_order_pictures():
    def second(inputs, cotangents, weights):
        return (np.zeros_like(X),), (weights[0] * 2 * inputs[0],)

    settings = replace(ASKED, order=2, probes=("derivative", "second_order"))
    report, drawn = pictures(replace(subject(X, lambda x: 2 * x), second=second), settings)
    assert [f.probe for f in report.failures] == ["second_order"]
    assert {p["order"] for p in drawn.values()} == {2}
    scatter = drawn["scatter"]
    assert {scatter["entries"][i].split("[")[0] for i in scatter["apart"]} == {"x"}
    assert drawn["slice"]["claimed"] == 0
    assert "stability" not in drawn


def test_a_gradient_that_is_not_finite_is_written_as_a_word():
    def wrong(x):
        slope = 2 * x
        slope[0, 0] = np.nan
        return slope

    scatter = pictures(subject(X, wrong))[1]["scatter"]
    assert scatter["claimed"][0] == "nan"
    assert scatter["apart"] == [0]


def test_a_gradient_of_another_shape_has_no_picture():
    other = replace(subject(X, np.square), pullback=lambda inputs, cotangents: (cotangents[0][0],))
    assert pictures(other)[1] == {}


def test_a_picture_that_json_cannot_hold_is_left_out():
    huge = np.array([1.7e308, 1.0])
    report, drawn = pictures(subject(huge, lambda x: np.ones_like(x), lambda x: x * 1.0))
    assert "slice" not in drawn  # it would step past the largest number
    assert report.verdict != "wrong"


def test_what_was_drawn_before_the_budget_was_spent_is_kept(monkeypatch):
    def drawn(*_):
        yield {"kind": "scatter"}
        raise Spent

    monkeypatch.setattr(sys.modules[check_subject.__module__], "pictures", drawn)
    report = check_subject(subject(X, lambda x: 2 * x), ASKED)
    assert (report.verdict, list(report.pictures)) == ("right", [{"kind": "scatter"}])
