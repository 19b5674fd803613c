"""The elementwise rules are right to the last digits: against mpmath, on every host, in every dtype."""

import exact
import mpmath as mp
import numpy as np
import pytest
from slopes import FRAMEWORKS, second, slopes

import pullback as pb

ULPS = 4
LONE = [name for name, row in exact.TABLE.items() if len(row.points("float16")) == 1]


@pytest.mark.parametrize("dtype", exact.DTYPES)
@pytest.mark.parametrize("name", exact.TABLE)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_value_and_slopes_are_right_to_the_last_digits(framework, name, dtype):
    points = exact.TABLE[name].points(dtype)
    found = slopes(framework, getattr(pb.ops, name), points)
    true = exact.truth(name, dtype)
    assert len(found) == len(true)
    for result, truth in zip(found, true):
        error = truth.error(result)
        worst = int(np.argmax(error))
        assert error[worst] <= ULPS, [float(x[worst]) for x in points]


ORDINARY = {"logit": [0.1, 0.5, 0.9], "safe_arccos": [-0.9, 0.0, 0.4], "safe_arcsin": [-0.9, 0.0, 0.4]}
POSITIVE = [1e-2, 0.4, 1.0, 3.0, 40.0]
BOTH = [-800.0, -40.0, -2.5, -0.7, 0.0, 1e-3, 0.7, 2.5, 40.0]
POSITIVE_ONLY = ("log1p", "log1mexp", "softplus_inverse", "safe_sqrt")


@pytest.mark.parametrize("name", LONE)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_second_derivative_is_right_far_out_and_at_zero(framework, name):
    at = np.array(ORDINARY.get(name) or (POSITIVE if name in POSITIVE_ONLY else BOTH))
    slope = exact.TABLE[name].slopes
    true = [float(mp.diff(lambda x: slope(x)[0], mp.mpf(float(x)), h=mp.mpf(10) ** -25)) for x in at]
    np.testing.assert_allclose(second(framework, getattr(pb.ops, name), at), true, rtol=1e-7, atol=1e-15)


@pytest.mark.parametrize("name", exact.TABLE)
def test_values_are_those_of_numpy_too(name):
    points = exact.TABLE[name].points("float64")
    with np.errstate(over="ignore"):  # what is infinite is told by NumPy; nothing else is
        found = getattr(pb.ops, name)(*points)
    assert exact.truth(name, "float64")[0].error(found).max() <= ULPS


def test_every_elementwise_rule_has_a_row():
    """A rule without one is right to no digit that anybody looked at; a kink has none to lose."""
    kinks = {"abs", "ceil", "clip", "floor", "max", "maximum", "median", "min", "minimum", "relu", "round"}
    kinks |= {"sort", "trunc"}
    rules = {name: getattr(getattr(pb.ops, name), "rule", None) for name in pb.ops.__all__}
    maker = pb.elementwise.__code__.co_filename
    elementwise = {n for n, rule in rules.items() if rule and rule.body.__code__.co_filename == maker}
    activations = {"gelu", "mish", "silu"}  # they have digits of their own to keep
    assert elementwise - kinks - activations - {"log1pexp"} == set(exact.TABLE)


def test_an_error_is_seen():
    """The judge itself: one unit, no number, an infinity, and zero for what is not small."""
    truth = exact.truth("sigmoid", "float32")[0]
    right = truth.high.astype(np.float32)
    assert truth.error(right).max() <= 0.5
    ordinary = np.flatnonzero(~truth.tiny & ~truth.huge)
    assert truth.error(np.nextafter(right, np.float32(2)))[ordinary].max() > 0.5
    assert np.isinf(truth.error(np.full_like(right, np.nan))).all()
    assert np.isinf(truth.error(np.full_like(right, np.inf))).all()
    assert (truth.error(0 * right)[ordinary] > 1e6).all()
