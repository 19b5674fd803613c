"""`@pb.custom_gradient`: a plain function comes out, that binds as Python does and carries its rule."""

import inspect
import pickle

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DefinitionError, NoTensorError

X = np.array([1.0, -2.0, 3.0])
Y = np.array([4.0, 5.0, 6.0])


@pb.custom_gradient
def affine(x, scale=2.0, *, shift=1.0):
    """Scale and shift."""

    def grad(dy):
        return dy * scale

    return x * scale + shift, grad


def test_the_function_is_known_by_its_own_name_and_signature():
    assert affine.__name__ == affine.rule.name == "affine"
    assert affine.__doc__ == "Scale and shift."
    assert str(inspect.signature(affine)) == "(x, scale=2.0, *, shift=1.0)"
    assert affine.rule.where == f"affine (test_define.py:{affine.rule.function.__code__.co_firstlineno})"
    assert not hasattr(affine, "__wrapped__")
    assert pickle.loads(pickle.dumps(affine)) is affine


CALLS = {
    "by position": lambda f: f(X),
    "with a default given": lambda f: f(X, 2.0),
    "by keyword": lambda f: f(shift=1.0, x=X),
    "by keyword in another order": lambda f: f(scale=2.0, x=X, shift=1.0),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_arguments_are_bound_as_python_binds_them(call):
    y = call(affine)
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(y, 2 * X + 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: affine(), "x"),
        (lambda: affine(X, 2.0, 1.0), "positional"),
        (lambda: affine(X, other=1.0), "other"),
        (lambda: affine(X, x=X), "multiple values"),
    ],
)
def test_a_call_that_python_would_refuse_is_refused_in_its_words(call, words):
    with pytest.raises(TypeError, match=words) as caught:
        call()
    assert not isinstance(caught.value, pb.errors.PullbackError)


def test_every_kind_of_parameter_has_its_cotangent(pull):
    @pb.custom_gradient
    def f(a, /, b, *rest, c, d=2, **more):
        def grad(dy):
            return {"a": dy, "b": 2 * dy, "rest": (3 * dy,), "c": 4 * dy, "e": 5 * dy}

        return a + 2 * b + 3 * rest[0] + 4 * c + 5 * more["e"], grad

    y, cotangents = pull(f, X, X, X, c=X, e=X)
    np.testing.assert_array_equal(y, 15 * X)
    assert [c[0] for c in cotangents] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_tensor_by_keyword_or_by_default_has_a_gradient_too(pull):
    @pb.custom_gradient
    def f(x, w=Y):
        return x * w, lambda dy: (dy * w, dy * x)

    for call in ((X,), (X, Y)):
        _, (dx, dw) = pull(f, *call)
        np.testing.assert_array_equal(dx, Y)
        np.testing.assert_array_equal(dw, X)
    _, (dx, dw) = pull(f, w=Y, x=X)
    np.testing.assert_array_equal(dx, Y)
    np.testing.assert_array_equal(dw, X)


def test_statics_reach_the_body_as_they_are():
    seen = []

    @pb.custom_gradient
    def f(x, *, name, axes, function, times=2):
        seen.append((name, axes, function, times))
        return x * times, lambda dy: dy * times

    f(X, name="a", axes=[0, 1], function=len)
    assert seen == [("a", [0, 1], len, 2)]


def test_a_method_is_a_rule_of_its_object(pull):
    class Scaled:
        factor = 3.0

        @pb.custom_gradient
        def apply(self, x):
            return x * self.factor, lambda dy: dy * self.factor

    y, cotangents = pull(Scaled().apply, X)
    np.testing.assert_array_equal(y, 3 * X)
    assert cotangents[-1].tolist() == [3.0] * 3


def test_an_object_that_can_be_called_is_a_body(pull):
    class Body:
        def __call__(self, x):
            return 2 * x, lambda dy: 2 * dy

    f = pb.custom_gradient(Body())
    assert f.rule.name == "Body"
    assert pull(f, X)[1][0].tolist() == [2.0] * 3


def test_a_float_alone_is_a_tensor_and_an_int_is_none():
    assert float(affine(3.0)) == 7.0
    with pytest.raises(NoTensorError) as caught:
        pb.custom_gradient(body)(3)
    assert "no argument is a tensor (x=int)" in str(caught.value)
    assert "fix: write x as a float or a tensor" in str(caught.value)


# ── the claim ────────────────────────────────────────────────────────────────────────────────────────────


def body(x):
    return x, lambda dy: dy


@pytest.mark.parametrize(
    ("options", "kind", "function", "reason"),
    [
        ({}, "exact", None, ""),
        ({"like": np.tanh}, "like", np.tanh, ""),
        ({"differs": "straight-through"}, "differs", None, "straight-through"),
    ],
)
def test_the_claim_is_kept_on_the_rule(options, kind, function, reason):
    intent = pb.custom_gradient(**options)(body).rule.intent
    assert (intent.kind, intent.function, intent.reason) == (kind, function, reason)


def test_the_order_is_kept_on_the_rule():
    assert pb.custom_gradient(order=1)(body).rule.order == 1
    assert pb.custom_gradient(body).rule.order is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pb.custom_gradient(3), "it was given a int"),
        (lambda: pb.custom_gradient(order=2)(body), "order=2"),
        (lambda: pb.custom_gradient(like=body, differs="why")(body), "both like= and differs="),
        (lambda: pb.custom_gradient(like="tanh")(body), "like='tanh'"),
        (lambda: pb.custom_gradient(differs=" ")(body), "differs=' '"),
        (lambda: pb.custom_gradient(differs=True)(body), "differs=True"),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused_where_it_stands(make, words):
    with pytest.raises(DefinitionError) as caught:
        make()
    assert words in str(caught.value)
    assert "fix: " in str(caught.value)


def test_a_pushforward_makes_the_rule_a_new_one():
    f = pb.custom_gradient(body)
    before = f.rule
    before.memo["measured"] = True

    @f.pushforward
    def push(dx, x):
        return dx

    assert f.rule is not before
    assert (before.pushforward, f.rule.pushforward) == (None, push)
    assert f.rule.body is before.body
    assert f.rule.memo == {}  # what was measured of the old one
