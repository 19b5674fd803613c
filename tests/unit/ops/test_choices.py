"""The slope at a kink is the one that was chosen, on every host; it is declared, and that is checked."""

import numpy as np
import pytest
import torch
from slopes import FRAMEWORKS, slopes

import pullback as pb

# a call, the point, and the gradient of the sum there
CHOICES = {
    "relu": (lambda x: pb.ops.relu(x, at_zero=0.5), [-1, 0, 2], [0, 0.5, 1]),
    "relu as frameworks have it": (pb.ops.relu, [-1, 0, 2], [0, 0, 1]),
    "abs": (lambda x: pb.ops.abs(x, at_zero=-0.25), [-1, 0, 2], [-1, -0.25, 1]),
    "maximum": (lambda x: pb.ops.maximum(x, 1.0, tie=0.3), [0, 1, 2], [0, 0.3, 1]),
    "minimum": (lambda x: pb.ops.minimum(x, 1.0), [0, 1, 2], [1, 0.5, 0]),
    "clip": (lambda x: pb.ops.clip(x, -1.0, 1.0, at_bounds=0.5), [-2, -1, 0, 1, 2], [0, 0.5, 1, 0.5, 0]),
    "clip from below": (lambda x: pb.ops.clip(x, 0.0), [-1, 0, 2], [0, 1, 1]),
    "floor": (lambda x: pb.ops.floor(x, at_step=0.5), [-1, 0.5, 2], [0.5, 0, 0.5]),
    "ceil": (lambda x: pb.ops.ceil(x, at_step=0.5), [-1, 0.5, 2], [0.5, 0, 0.5]),
    "round": (lambda x: pb.ops.round(x, at_step=2.0), [-1, 0.5, 2.5], [0, 2, 2]),
    "trunc": (lambda x: pb.ops.trunc(x, at_step=1.0), [-1, 0, 0.5, 2], [1, 0, 0, 1]),
    "max": (pb.ops.max, [3, 1, 3, 3], [1 / 3, 0, 1 / 3, 1 / 3]),
    "max, the first": (lambda x: pb.ops.max(x, ties="first"), [1, 3, 3], [0, 1, 0]),
    "max of rows": (lambda x: pb.ops.max(x, axis=1), [[3, 3], [1, 2]], [[0.5, 0.5], [0, 1]]),
    "max of all": (
        lambda x: pb.ops.max(x, axis=(0, 1), keepdims=True),
        [[3, 3], [1, 2]],
        [[0.5, 0.5], [0, 0]],
    ),
    "min": (lambda x: pb.ops.min(x, axis=0), [[3, 1], [3, 2]], [[0.5, 1], [0.5, 0]]),
    "sort": (lambda x: _WEIGHTS * pb.ops.sort(x), [3, 1, 3, 2], [5.5, 1, 5.5, 2]),
    "sort downwards": (lambda x: _WEIGHTS * pb.ops.sort(x, descending=True), [3, 1, 3, 2], [1.5, 7, 1.5, 4]),
    "sort of equal values": (lambda x: _WEIGHTS * pb.ops.sort(x), [1, 1, 1, 1], [3.5] * 4),
    "median": (pb.ops.median, [3, 1, 2], [0, 0, 1]),
    "median of a tie": (pb.ops.median, [2, 1, 2, 2, 5], [1 / 3, 0, 1 / 3, 1 / 3, 0]),
    "median of an even number": (pb.ops.median, [4, 1, 2, 9], [0.5, 0, 0.5, 0]),
    "median of rows": (
        lambda x: pb.ops.median(x, axis=1, keepdims=True),
        [[3, 1, 2], [5, 5, 1]],
        [[0, 0, 1], [0.5, 0.5, 0]],
    ),
}
_WEIGHTS = np.array([1.0, 2.0, 4.0, 7.0])


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_slope_at_the_kink_is_the_chosen_one(framework, name):
    call, point, expected = CHOICES[name]
    if framework == "torch" and "sort" in name:
        chosen = call
        call = lambda x: chosen(x) if isinstance(x, np.ndarray) else _weighed(x, name)  # noqa: E731
    x = np.array(point, np.float64)
    value, gradient = slopes(framework, call, [x])
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    np.testing.assert_allclose(value, CHOICES[name][0](x), rtol=1e-12)


def _weighed(x, name):
    return torch.tensor(_WEIGHTS) * pb.ops.sort(x, descending="downwards" in name)


def test_nan_is_the_result():
    x = np.array([1.0, np.nan, 2.0])
    assert np.isnan(pb.ops.median(x))
    assert np.isnan(pb.ops.max(x))
    assert np.isnan(pb.ops.relu(x)[1])
    assert np.isnan(pb.ops.clip(x, 0.0, 1.0)[1])
    assert np.isnan(pb.ops.maximum(x, 0.0)[1])
    assert np.isnan(pb.ops.maximum(np.zeros(3), x)[1])


def finding(function, *args, **kwargs):
    report = pb.check(function, *args, seed=1, own_points=False, probes=["derivative", "chosen"], **kwargs)
    return report, [f for f in report.findings if f.probe == "chosen"]


KINKED = {
    "relu": ((torch.tensor([0.5, 0.0, -1.0]),), {"at_zero": 0.5}),
    "abs": ((torch.tensor([0.5, 0.0, -1.0]),), {"at_zero": 0.5}),
    "maximum": ((torch.tensor([0.5, 0.0]), torch.tensor([0.5, 1.0])), {"tie": 0.25}),
    "minimum": ((torch.tensor([0.5, 0.0]), torch.tensor([0.5, 1.0])), {}),
    "clip": ((torch.tensor([0.5, 1.0, -3.0]), -1.0, 1.0), {"at_bounds": 0.5}),
    "floor": ((torch.tensor([0.5, 1.0, -3.0]),), {"at_step": 0.5}),
    "ceil": ((torch.tensor([0.5, 1.0, -3.0]),), {}),
    "round": ((torch.tensor([0.5, 1.0, -3.0]),), {"at_step": 0.5}),
    "trunc": ((torch.tensor([0.5, 1.0, -3.0]),), {}),
    "max": ((torch.tensor([0.5, 1.0, 1.0]),), {}),
    "min": ((torch.tensor([0.5, 0.5, 1.0]),), {"ties": "first"}),
    "sort": ((torch.tensor([0.5, 0.5, 1.0]),), {}),
    "median": ((torch.tensor([0.5, 0.5, 1.0]),), {}),
    "safe_sqrt": ((torch.tensor([0.5, 0.0, -1.0]),), {}),
    "safe_divide": ((torch.tensor([0.5, 1.0]), torch.tensor([0.0, 2.0])), {}),
    "safe_power": ((torch.tensor([0.0, 1.5]), torch.tensor([0.5, 2.0])), {}),
    "safe_arccos": ((torch.tensor([0.5, 1.0, -1.0]),), {}),
    "safe_arcsin": ((torch.tensor([0.5, 1.0, -1.0]),), {}),
}


def test_every_choice_is_declared():
    rules = {n: getattr(getattr(pb.ops, n), "rule", None) for n in pb.ops.__all__}
    declared = {n for n, rule in rules.items() if rule and rule.intent.chosen is not None}
    assert declared == set(KINKED)
    assert str(pb.ops.relu.rule.intent) == "the derivative; chosen: `at_zero` at x = 0"


@pytest.mark.parametrize("name", KINKED)
def test_the_checker_finds_the_declared_choice_at_the_kink(name):
    args, kwargs = KINKED[name]
    report, (found,) = finding(getattr(pb.ops, name), *args, **kwargs)
    assert report.verdict != "wrong", [f.sentence for f in report.failures]
    assert found.sentence.startswith("the declared choice stands")


def test_a_choice_that_is_not_the_declared_one_is_wrong():
    @pb.elementwise(
        partials=lambda x: (x >= 0).to(x.dtype), chosen=lambda x: torch.where(x == 0, 0.5, torch.nan)
    )
    def relu(x):
        return torch.relu(x)

    report = pb.check(relu, torch.tensor([0.5, -1.0]), seed=1, probes=["chosen"])  # it finds the kink itself
    found = report.findings
    assert report.verdict == "wrong"
    assert "is 1 at a point" in found[0].sentence
    assert "where 0.5 is declared" in found[0].sentence


def test_a_choice_between_no_slopes_is_wrong_though_it_is_declared():
    @pb.elementwise(
        partials=lambda x: torch.where(x == 0, 3.0, (x > 0).to(x.dtype)),
        chosen=lambda x: torch.where(x == 0, 3.0, torch.nan),
    )
    def relu(x):
        return torch.relu(x)

    assert finding(relu, torch.tensor([0.5, 0.0, -1.0]))[0].verdict == "wrong"


def test_the_middle_of_three_equal_values_is_no_failure():
    """It is smooth along every line, and has no gradient: the checker goes there by itself."""
    report = pb.check(pb.ops.sort, torch.tensor([0.5, 0.5, 1.0]), seed=1, probes=["derivative"])
    assert report.verdict == "right", [f.sentence for f in report.failures]


def test_a_choice_is_a_function_and_no_excuse():
    with pytest.raises(pb.errors.DefinitionError, match=r"chosen=0\.5"):
        pb.elementwise(torch.relu, torch.sign, chosen=0.5)
    with pytest.raises(pb.errors.DefinitionError, match="both chosen= and differs="):
        pb.elementwise(torch.relu, torch.sign, chosen=torch.sign, differs="on purpose")


def test_numbers_have_no_slope():
    """A rule of two takes a number for one of them, on either side."""
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    by_x, by_y = [np.log(2)] * 2, [4.0, 1.0]
    calls = ((pb.ops.xlogy(x, 2.0), by_x), (pb.ops.xlogy(2.0, x), by_y), (pb.ops.xlogy(y=2.0, x=x), by_x))
    for y, slope in calls:
        (found,) = torch.autograd.grad(y.sum(), x)
        np.testing.assert_allclose(found, slope, rtol=1e-6)
