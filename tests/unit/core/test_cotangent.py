"""One cotangent against its input, and the words when they do not agree, without a framework."""

import functools

import numpy as np
import pytest

from pullback import cotangent
from pullback.errors import CotangentDtypeError, CotangentShapeError
from pullback.hosts import NUMPY
from pullback.hosts.specs import same_shape


def grad(dy):
    return dy


def conform(value, like, function=grad, **more):
    return cotangent.conform(value, like, NUMPY, "f (file.py:1)", "argument `x`", function, **more)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_a_real_cotangent_is_cast_to_the_dtype_of_its_input(dtype):
    found = conform(np.array([1.0, 2.0]), np.zeros(2, dtype))
    assert found.dtype == dtype
    assert found.tolist() == [1.0, 2.0]


def test_a_number_is_the_cotangent_of_a_scalar_alone():
    assert conform(2.0, np.array(1.0)).tolist() == 2.0
    with pytest.raises(
        CotangentShapeError, match=r"`grad` returned shape \(\) for argument `x` of shape \(3,\)"
    ):
        conform(2.0, np.zeros(3))


SHAPES = {
    "broadcast along one axis": (
        (4, 3),
        (3,),
        "`x` was broadcast along axis 0: its cotangent is summed there",
        "fix: return pb.unbroadcast(dx, like=x)",
    ),
    "broadcast along two": ((4, 3), (1, 1), "was broadcast along axes 0, 1", "pb.unbroadcast(dx, like=x)"),
    "summed": (
        (3,),
        (4, 3),
        "it would be broadcast later into plausible wrong numbers",
        "do not sum or average",
    ),
    "transposed": ((3, 4), (4, 3), "the axes are in another order", "transpose it back to the order of `x`"),
    "another": ((5,), (3,), "", "fix: return a cotangent of shape (3,)"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_wrong_shape_is_refused_with_what_went_wrong(name):
    have, want, why, fix = SHAPES[name]
    with pytest.raises(CotangentShapeError) as caught:
        conform(np.ones(have), np.zeros(want))
    text = str(caught.value)
    assert text.startswith("f (file.py:1)")
    assert f"returned shape {have} for argument `x` of shape {want}" in text
    assert why in text
    assert fix in text


@pytest.mark.parametrize(
    ("value", "words", "fix"),
    [
        (
            np.ones(3) * 1j,
            "`grad` returned complex128 for argument `x`, which is float64",
            "take its real part",
        ),
        (np.ones(3, int), "returned int64 for argument `x`, which is float64", "or return None"),
        (np.ones(3, bool), "returned bool for argument `x`", "cast it"),
        ("dx", "returned a str for argument `x`", "or None for no gradient"),
        (True, "returned a bool for argument `x`", "return a tensor"),
        (dict, "returned the class dict for argument `x`", "return a tensor"),
        (np.array(["a"]), "returned an array of strings for argument `x`", "return a tensor"),
    ],
)
def test_what_is_no_cotangent_is_refused_by_its_kind(value, words, fix):
    with pytest.raises(CotangentDtypeError) as caught:
        conform(value, np.zeros(3))
    assert words in str(caught.value)
    assert fix in str(caught.value)


@pytest.mark.parametrize("value", ["dx", np.ones(3, int)])
def test_where_there_must_be_one_none_is_not_proposed(value):
    with pytest.raises(CotangentDtypeError) as caught:
        conform(value, np.zeros(3), optional=False)
    assert "None" not in str(caught.value)


def test_a_function_is_shown_by_its_name_or_its_place():
    unnamed = lambda dy: dy  # noqa: E731
    assert cotangent.shown(grad) == "`grad`"
    assert cotangent.shown(functools.partial(grad)) == "`grad`"
    assert cotangent.shown(unnamed).startswith("the lambda (test_cotangent.py:")


def test_names_of_cotangents_are_none_that_grad_takes():
    assert cotangent.cotangent_names(["x", "xs[1]"], grad) == ["dx", "dxs_1"]
    assert cotangent.cotangent_names(["x", "y"], grad) == ["grad_x", "grad_y"]
    assert cotangent.cotangent_names(["x"], lambda dx: dx) == ["grad_x"]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((), (), True),
        ((3,), (3,), True),
        ((None, 3), (2, 3), True),
        ((None,), (None,), True),
        ((2, 3), (3, 2), False),
        ((3,), (3, 1), False),
        ((None, 3), (2, 4), False),
    ],
)
def test_an_unknown_length_may_be_any(a, b, expected):
    assert same_shape(a, b) is same_shape(b, a) is expected
