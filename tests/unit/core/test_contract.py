"""What a body and a `grad` may return, and the words for everything else, without a framework."""

import collections
import functools

import numpy as np
import pytest

import pullback as pb
from pullback import outputs

Pair = collections.namedtuple("Pair", "first second")
X = np.array([1.0, -2.0, 3.0])
Y = np.array([4.0, 5.0, 6.0])


def rule(outputs, grad):
    """Make a rule of two arguments: `outputs` of 2x and 3y, and a `grad`."""

    @pb.custom_gradient
    def f(x, y):
        return *outputs(2 * x, 3 * y), grad

    return f


# ── outputs, and how their cotangents reach `grad` ───────────────────────────────────────────────────────

FORMS = {
    "bare": (lambda z, w: (z, w), lambda dz, dw: (2 * dz, 3 * dw), tuple),
    "tuple": (lambda z, w: ((z, w),), lambda dz, dw: (2 * dz, 3 * dw), tuple),
    "list": (lambda z, w: ([z, w],), lambda dz, dw: (2 * dz, 3 * dw), list),
    "dict": (lambda z, w: ({"a": z, "b": w},), lambda d: (2 * d["a"], 3 * d["b"]), dict),
    "leaves of a dict": (lambda z, w: ({"b": w, "a": z},), lambda da, db: (2 * da, 3 * db), dict),
    "named tuple": (lambda z, w: (Pair(z, w),), lambda d: (2 * d.first, 3 * d.second), Pair),
    "nested": (lambda z, w: ({"a": [z], "b": (w,)},), lambda d: (2 * d["a"][0], 3 * d["b"][0]), dict),
    "any number": (lambda z, w: (z, w), lambda *ds: (2 * ds[0], 3 * ds[1]), tuple),
}


@pytest.mark.parametrize("form", FORMS)
def test_outputs_come_back_as_the_body_made_them_and_each_cotangent_finds_its_output(pull, form):
    outputs, grad, kind = FORMS[form]
    found, (dx, dy) = pull(rule(outputs, grad), X, Y, cotangents=[X, Y])
    assert type(found) is kind
    np.testing.assert_array_equal(dx, 2 * X)
    np.testing.assert_array_equal(dy, 3 * Y)


def test_a_static_among_the_outputs_is_returned_and_has_no_cotangent(pull):
    seen = []

    @pb.custom_gradient
    def f(x):
        def grad(*given):
            seen.extend(given)
            return 2 * given[0]

        return 2 * x, "static", grad

    (y, name), (dx,) = pull(f, X, cotangents=[X])
    assert name == "static"
    assert seen[1] is None
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_array_equal(dx, 2 * X)


def test_a_missing_cotangent_is_zeros_of_its_output(pull):
    f = rule(lambda z, w: (z, w[:2]), lambda dz, dw: (2 * dz, np.append(3 * dw, 7.0)))
    _, (dx, dy) = pull(f, X, Y, cotangents=[X, None])
    np.testing.assert_array_equal(dx, 2 * X)
    np.testing.assert_array_equal(dy, [0.0, 0.0, 7.0])


BODIES = {
    "nothing": (lambda x: None, "the body returned nothing"),
    "a tensor alone": (lambda x: x, "the body returned a ndarray alone"),
    "no grad at the end": (lambda x: (x, "grad"), "the body returned 2 values, the last a str"),
    "only grad": (lambda x: (lambda dy: dy,), "the body returned only `grad`"),
    "a class": (lambda x: (x, dict), "2 values, the last the class dict"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_without_grad_is_refused_by_what_it_returned(name):
    body, words = BODIES[name]
    with pytest.raises(pb.errors.MissingGradError) as caught:
        pb.custom_gradient(body)(X)
    assert words in str(caught.value)
    assert "return y, grad" in str(caught.value)


def test_outputs_without_a_floating_tensor_are_refused():
    f = pb.custom_gradient(lambda x: (x.astype(int), lambda dy: dy))
    with pytest.raises(pb.errors.OutputError, match=r"the outputs are: int64 \(3,\)"):
        f(X)
    assert f(np.array([1, 2])).tolist() == [1, 2]  # nothing in, nothing out


GRADS = {
    "none": (lambda: (X, X), "takes 0 positional arguments", "def grad(dy, dz):"),
    "too few": (lambda dy: (X, X), "takes 1 positional argument\n", "def grad(dy, dz):"),
    "too many": (lambda a, b, c: (X, X), "takes 3 positional arguments", "def grad(dy, dz):"),
    "some required": (lambda a, b, c, d=0: (X, X), "takes 4 positional arguments, 3 of them", "def grad("),
}


@pytest.mark.parametrize("name", GRADS)
def test_a_grad_that_cannot_take_the_cotangents_is_refused_by_its_signature(name):
    grad, words, fix = GRADS[name]
    with pytest.raises(pb.errors.GradSignatureError) as caught:
        rule(lambda z, w: (z, w), grad)(X, Y)
    assert words in str(caught.value)
    assert "2: one cotangent per output" in str(caught.value)
    assert fix in str(caught.value)


# ── cotangents ───────────────────────────────────────────────────────────────────────────────────────────

RETURNS = {
    "a tuple": lambda d: (2 * d, 3 * d),
    "a list": lambda d: [2 * d, 3 * d],
    "by name": lambda d: {"y": 3 * d, "x": 2 * d},
    "one per argument": lambda d: (2 * d, None, 3 * d, None),
    "single precision": lambda d: (2 * d.astype("float32"), 3 * d),
    "a list of numbers' array": lambda d: (np.array([2, 2, 2]) * 1.0, 3 * d),
}


@pytest.mark.parametrize("form", RETURNS)
def test_cotangents_come_by_position_or_by_name_and_statics_need_none(pull, form):
    @pb.custom_gradient
    def f(x, times, y, label="sum"):
        return times * x + 3 * y, RETURNS[form]

    _, (dx, dy) = pull(f, X, 2, Y)
    np.testing.assert_array_equal(dx, [2.0] * 3)
    np.testing.assert_array_equal(dy, [3.0] * 3)
    assert dx.dtype == X.dtype


def test_one_name_is_enough_and_the_others_have_no_gradient(pull):
    _, (dx, dy) = pull(rule(lambda z, w: (z + w,), lambda d: {"y": 3 * d}), X, Y)
    assert dx is None
    np.testing.assert_array_equal(dy, [3.0] * 3)


def test_an_integer_has_no_gradient_and_may_be_left_out(pull):
    @pb.custom_gradient
    def take(x, index):
        def grad(dy):
            dx = np.zeros_like(x)
            np.add.at(dx, index, dy)
            return dx

        return x[index], grad

    _, (dx, dindex) = pull(take, X, np.array([0, 2, 2]))
    assert dx.tolist() == [1.0, 0.0, 2.0]
    assert dindex is None


def test_a_cotangent_has_the_structure_of_its_argument(pull):
    @pb.custom_gradient
    def f(pair):
        def grad(dy):
            return {"a": 2 * dy, "b": None}

        return 2 * pair["a"] + pair["b"], grad

    _, (da, db) = pull(f, {"b": Y, "a": X})
    assert da.tolist() == [2.0] * 3
    assert db is None


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (lambda dy: (2 * dy, 3 * dy), [2.0, 3.0]),
        (lambda dy: {"xs": (2 * dy, 3 * dy)}, [2.0, 3.0]),
        (lambda dy: {"xs[1]": 3 * dy}, [None, 3.0]),
    ],
    ids=["by position", "by name", "one by name"],
)
def test_a_star_argument_has_one_cotangent_each(pull, form, expected):
    @pb.custom_gradient
    def f(*xs):
        return 2 * xs[0] + 3 * xs[1], form

    _, cotangents = pull(f, X, Y)
    assert [None if c is None else c[0] for c in cotangents] == expected


def no_return(d):  # noqa: RET503 (the mistake)
    if d[0] == 7:
        return d, d


WRONG = {
    "too few": (lambda d: (d,), "returned 1 cotangent\n", "fix: return grad_x, grad_y"),
    "a bare one": (lambda d: d, "returned 1 cotangent\n", "2: one per tensor argument (`x`, `y`)"),
    "too many": (lambda d: (d, d, d), "returned 3 cotangents\n", "or a dict by name"),
    "a name that is no argument": (lambda d: {"z": d}, "returned a cotangent for `z`", "among `x`, `y`"),
    "nothing": (no_return, "`no_return` returned nothing", "it can end without a return statement"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_number_of_cotangents_is_refused_by_name(pull, name):
    grad, found, expected = WRONG[name]
    with pytest.raises(pb.errors.CotangentCountError) as caught:
        pull(rule(lambda z, w: (z + w,), grad), X, Y)
    text = str(caught.value)
    assert found in text
    assert expected in text
    assert text.startswith("f (test_contract.py:")


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ([1.0, 2.0, 3.0], "of another structure than its argument"),
        ({"pair": {"c": X}}, "the cotangent of argument `pair` has another structure than the argument"),
    ],
)
def test_a_cotangent_of_another_structure_is_refused(pull, returned, words):
    @pb.custom_gradient
    def f(pair):
        return pair["a"] + pair["b"], lambda dy: returned if isinstance(returned, dict) else [returned]

    with pytest.raises(pb.errors.CotangentCountError, match=words):
        pull(f, {"a": X, "b": Y})


def test_none_that_was_written_is_no_gradient(pull):
    assert pull(pb.custom_gradient(lambda x: (2 * x, lambda d: None)), X)[1] == [None]
    assert pull(rule(lambda z, w: (z + w,), lambda d: (None, None)), X, Y)[1] == [None, None]


# ── signatures ───────────────────────────────────────────────────────────────────────────────────────────


class Called:
    def __call__(self, dy, dz=None):
        return dy

    def method(self, dy, *, variables=None):
        return dy


@pytest.mark.parametrize(
    ("function", "least", "most", "variables"),
    [
        (lambda: 0, 0, 0, False),
        (lambda dy: 0, 1, 1, False),
        (lambda dy, dz=0: 0, 1, 2, False),
        (lambda *ds: 0, 0, float("inf"), False),
        (lambda dy, *, scale=1: 0, 1, 1, False),
        (lambda dy, variables=None: 0, 1, 1, True),
        (lambda dy, variables: 0, 1, 1, True),
        (lambda dy, *, variables=None: 0, 1, 1, True),
        (lambda dy, **more: 0, 1, 1, True),
        (functools.partial(lambda a, dy: 0, 1), 1, 1, False),
        (Called(), 1, 2, False),
        (Called().method, 1, 1, True),
    ],
)
def test_a_function_tells_how_many_cotangents_it_takes(function, least, most, variables):
    assert outputs.accepts(function) == (least, most, variables)
    assert outputs.accepts(function) == (least, most, variables)  # remembered
