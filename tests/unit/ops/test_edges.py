"""What the rules give at the edges: zeros, infinities, NaN, outside the domain, empty, too large.

One row is one edge: the arguments, the value, the slopes. NaN stands only where the file of the rule says so.
"""

import exact
import numpy as np
import pytest
from slopes import FRAMEWORKS, slopes

import pullback as pb
from pullback.errors import OptionError, UnsupportedInputError

INF, NAN = np.inf, np.nan
EDGES = {
    "sigmoid": [((-INF,), 0, (0,)), ((INF,), 1, (0,)), ((NAN,), NAN, (NAN,))],
    "softplus": [((-INF,), 0, (0,)), ((INF,), INF, (1,)), ((NAN,), NAN, (NAN,))],
    "log_sigmoid": [((-INF,), -INF, (1,)), ((INF,), 0, (0,)), ((NAN,), NAN, (NAN,))],
    "log1p": [((-1,), -INF, (INF,)), ((INF,), INF, (0,)), ((-2,), NAN, (NAN,)), ((NAN,), NAN, (NAN,))],
    "log1mexp": [((0,), -INF, (INF,)), ((INF,), 0, (0,)), ((-1,), NAN, (NAN,)), ((NAN,), NAN, (NAN,))],
    "softplus_inverse": [((0,), -INF, (INF,)), ((INF,), INF, (1,)), ((-1,), NAN, (NAN,))],
    "logaddexp": [
        ((INF, INF), INF, (0.5, 0.5)),
        ((-INF, -INF), -INF, (0.5, 0.5)),
        ((1, -INF), 1, (1, 0)),
        ((INF, 1), INF, (1, 0)),
        ((-INF, INF), INF, (0, 1)),
        ((NAN, 1), NAN, (NAN, NAN)),
    ],
    "logsubexp": [
        ((1, 1), -INF, (INF, -INF)),
        ((1, -INF), 1, (1, 0)),
        ((INF, 1), INF, (1, 0)),
        ((1, 2), NAN, (NAN, NAN)),
    ],
    "logit": [((0,), -INF, (INF,)), ((1,), INF, (INF,)), ((-1,), NAN, (NAN,)), ((2,), NAN, (NAN,))],
    "xlogy": [
        ((0, 0), 0, (-INF, 0)),
        ((0, 2), 0, (np.log(2), 0)),
        ((2, 0), -INF, (-INF, INF)),
        ((0, -1), 0, (NAN, NAN)),
        ((1, -1), NAN, (NAN, NAN)),
    ],
    "xlog1py": [
        ((0, -1), 0, (-INF, 0)),
        ((0, 1), 0, (np.log(2), 0)),
        ((2, -1), -INF, (-INF, INF)),
        ((0, -2), 0, (NAN, NAN)),
    ],
    "expm1_over_x": [((0,), 1, (0.5,)), ((-INF,), 0, (0,)), ((INF,), INF, (INF,)), ((NAN,), NAN, (NAN,))],
    "safe_sqrt": [((0,), 0, (0,)), ((-1,), 0, (0,)), ((INF,), INF, (0,)), ((NAN,), NAN, (NAN,))],
    "safe_divide": [
        ((1, 0), 0, (0, 0)),
        ((0, 0), 0, (0, 0)),
        ((1, INF), 0, (0, 0)),
        ((NAN, 1), NAN, (1, NAN)),
    ],
    "safe_power": [
        ((0, 0.5), 0, (0, 0)),
        ((-1, 0.5), 0, (0, 0)),
        ((0, 0), 1, (0, 0)),
        ((0, -1), 0, (0, 0)),
        ((1, 0), 1, (0, 0)),
        # x^(p − 1) is too large for float32, p·x^(p − 1) is not
        ((2**-110, -21 / 128), 2**18.046875, (-21 / 128 * 2**128.046875, 2**18.046875 * -110 * np.log(2))),
        ((INF, 2), INF, (INF, INF)),
        ((INF, 1), INF, (1, INF)),
        ((INF, 0.5), INF, (0, INF)),
        ((INF, -2), 0, (0, 0)),
        ((0.5, INF), 0, (0, 0)),
        ((-1, INF), 0, (0, 0)),
        ((NAN, 0.5), NAN, (NAN, NAN)),
        ((0, NAN), NAN, (NAN, NAN)),
    ],
    "safe_arccos": [((1,), 0, (0,)), ((-2,), np.pi, (0,)), ((NAN,), NAN, (NAN,))],
    "safe_arcsin": [((1,), np.pi / 2, (0,)), ((-2,), -np.pi / 2, (0,)), ((NAN,), NAN, (NAN,))],
    "sinc": [((0,), 1, (0,)), ((INF,), 0, (0,)), ((-INF,), 0, (0,)), ((NAN,), NAN, (NAN,))],
    "huber": [((INF,), INF, (1,)), ((-INF,), INF, (-1,)), ((1,), 0.5, (1,)), ((NAN,), NAN, (NAN,))],
    "log_cosh": [((INF,), INF, (1,)), ((-INF,), INF, (-1,)), ((0,), 0, (0,)), ((NAN,), NAN, (NAN,))],
    "binary_cross_entropy_from_logits": [
        ((INF, 1), 0, (0, -INF)),
        ((-INF, 0), 0, (0, INF)),
        ((INF, 0), INF, (1, -INF)),
        ((-INF, 1), INF, (-1, INF)),
        ((NAN, 1), NAN, (NAN, NAN)),
    ],
    "focal_loss": [
        ((INF, 1), 0, (0, -INF)),
        ((-INF, 0), 0, (0, INF)),
        ((INF, 0), INF, (1, -INF)),
        ((-INF, 1), INF, (-1, INF)),
        ((NAN, 1), NAN, (NAN, NAN)),
    ],
}


def test_every_rule_has_edges():
    assert set(EDGES) == set(exact.TABLE)


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_edges_are_as_they_are_documented(framework, name):
    rows = EDGES[name]
    points = [np.array(column, np.float32) for column in zip(*(args for args, _, _ in rows))]
    value, *gradients = slopes(framework, getattr(pb.ops, name), points)
    np.testing.assert_allclose(value, [row[1] for row in rows], rtol=1e-6)
    for k, gradient in enumerate(gradients):
        np.testing.assert_allclose(gradient, [row[2][k] for row in rows], rtol=1e-6)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nothing_of_nothing(framework):
    """An empty array gives an empty value and an empty gradient: all rules in one function."""

    def every(x):
        total = x
        for name, row in exact.TABLE.items():
            total = total + getattr(pb.ops, name)(*[x] * len(row.points("float16")))
        return total

    value, gradient = slopes(framework, every, [np.zeros((0, 3), np.float32)])
    assert value.shape == gradient.shape == (0, 3)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_too_large_for_half_precision_is_infinite_and_no_nan(framework):
    large = np.array([60000.0, -60000.0, 6e-8, 60.0], np.float16)
    for name in ("expm1_over_x", "huber", "softplus", "log_cosh", "safe_sqrt", "log1p"):
        x = np.abs(large) if name == "log1p" else large
        value, gradient = slopes(framework, getattr(pb.ops, name), [x])
        assert not np.isnan(value).any()
        assert not np.isnan(gradient).any()
    value, *gradients = slopes(framework, pb.ops.safe_divide, [large, np.full(4, 6e-8, np.float16)])
    assert not np.isnan([value, *gradients]).any()


@pytest.mark.parametrize("name", exact.TABLE)
def test_the_smallest_numbers_are_themselves_or_zero(name):
    """A host may take a subnormal number for zero: what comes out is right for one of the two."""
    tiny = np.array([1e-40, -3e-42, 1e-45], np.float32)
    tiny = np.abs(tiny) if name in ("log1p", "log1mexp", "softplus_inverse", "logit") else tiny
    row = exact.TABLE[name]
    f = getattr(pb.ops, name)
    if len(row.points("float16")) > 1 or name == "safe_sqrt":
        return  # a quotient of two of them may be anything
    for found, at_zero in zip(slopes("torch", f, [tiny]), slopes("torch", f, [0 * tiny])):
        near = np.isclose(found, at_zero, rtol=1e-5, atol=1e-30)
        large = np.abs(found) > 1e38  # 1 / x, where that is all
        assert (near | large | (name == "log1mexp") | (name == "softplus_inverse") | (name == "logit")).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: pb.ops.huber(x, delta=0.0), "delta=0.0"),
        (lambda x: pb.ops.huber(x, delta="one"), "delta='one'"),
        (lambda x: pb.ops.focal_loss(x, x, gamma=-1.0), "gamma=-1.0"),
        (lambda x: pb.ops.focal_loss(x, x, alpha=1.5), "not greater than 1"),
        (lambda x: pb.ops.relu(x, at_zero=2.0), "no subgradient"),
        (lambda x: pb.ops.relu(x, at_zero=None), "at_zero=None"),
        (lambda x: pb.ops.abs(x, at_zero=-2), "from -1 to 1"),
        (lambda x: pb.ops.floor(x, at_step=-1.0), "not negative"),
        (lambda x: pb.ops.maximum(x, x, tie=1.5), "tie=1.5"),
        (lambda x: pb.ops.clip(x, 1.0, -1.0), "the lower bound first"),
        (lambda x: pb.ops.clip(x, x, 1.0), "two numbers"),
        (lambda x: pb.ops.max(x, axis=3), "axis=3"),
        (lambda x: pb.ops.max(x, ties="all"), "one of 'even', 'first'"),
        (lambda x: pb.ops.max(np.ones((2, 2)), ties="first"), "along 2 axes"),
        (lambda x: pb.ops.median(x[:0]), "no value"),
        (lambda x: pb.ops.max(x[:0]), "no value"),
        (lambda x: pb.ops.min(x[None, :0], axis=1), "no value"),
        (lambda x: pb.ops.max(x, axis=(0, 0)), "each axis once"),
        (lambda x: pb.ops.attention(*[x.reshape(1, 3, 1)] * 3, scale=np.nan), "scale=nan"),
        (lambda x: pb.ops.sort(x, axis=1), "axis=1"),
    ],
)
def test_a_bad_option_is_refused(call, said):
    with pytest.raises(OptionError, match=said):
        call(np.ones(3))


@pytest.mark.parametrize("name", exact.TABLE)
@pytest.mark.parametrize("dtype", ["int32", "complex64"])
def test_what_is_no_real_floating_number_is_refused(name, dtype):
    """A root of 2 that is 1, in the dtype of its input, would be no answer."""
    given = [np.ones(2, dtype)] * len(exact.TABLE[name].points("float16"))
    with pytest.raises(UnsupportedInputError, match=f"{dtype}(.|\n)*real floating numbers"):
        getattr(pb.ops, name)(*given)
