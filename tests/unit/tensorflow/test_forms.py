"""Every form in which a body may return its outputs, and a `grad` its cotangents."""

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

Pair = collections.namedtuple("Pair", "first second")
X = tf.constant([0.5, -1.0, 2.0])
Y = tf.constant([1.5, 0.25, -3.0])


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pb.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


def outputs_of(form, z, w):
    return {
        "bare": lambda g: (z, w, g),
        "tuple": lambda g: ((z, w), g),
        "list": lambda g: ([z, w], g),
        "dict": lambda g: ({"a": z, "b": w}, g),
        "named": lambda g: (Pair(z, w), g),
        "nested": lambda g: ({"a": [z], "b": (w,)}, g),
    }[form]


def dz_dw(form, cotangents):
    if form in ("bare", "tuple", "list"):
        return cotangents
    (whole,) = cotangents
    if form == "dict":
        return whole["a"], whole["b"]
    if form == "named":
        assert isinstance(whole, Pair)
        return whole.first, whole.second
    return whole["a"][0], whole["b"][0]


def two_outputs(form):
    @pb.custom_gradient
    def f(x, y):
        def grad(*cotangents):
            dz, dw = dz_dw(form, cotangents)
            return dz * (y + tf.cos(x)), dz * x + dw * 2 * y

        # `grad` must know how many cotangents it takes, so that the signature can be checked
        one = {"bare": 2, "tuple": 2, "list": 2}.get(form, 1)
        takes = (lambda a, b: grad(a, b)) if one == 2 else (lambda a: grad(a))
        return outputs_of(form, x * y + tf.sin(x), y * y)(takes)

    return f


FORMS = ["bare", "tuple", "list", "dict", "named", "nested"]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_outputs_gives_the_same_numbers(form, pull):
    def plain(x, y):
        return x * y + tf.sin(x), y * y

    outputs, gradients = pull(two_outputs(form), [X, Y])
    expected, expected_gradients = pull(plain, [X, Y])
    close(tf.nest.flatten(outputs), tf.nest.flatten(expected))
    close(gradients, expected_gradients)


@pytest.mark.parametrize("form", FORMS)
def test_the_caller_gets_the_structure_of_the_body(form):
    z, w = dz_dw(
        form, two_outputs(form)(X, Y) if form in ("bare", "tuple", "list") else [two_outputs(form)(X, Y)]
    )
    close(z, X * Y + tf.sin(X))
    close(w, Y * Y)


def test_a_grad_that_takes_the_leaves_of_a_dict_one_by_one_is_understood(pull):
    @pb.custom_gradient
    def f(x):
        def grad(da, db):
            return 2 * da + 3 * db

        return {"b": 3 * x, "a": 2 * x}, grad  # in the order of the keys, as TensorFlow hands them over

    _, (dx,) = pull(f, [X], [tf.ones(3), 10 * tf.ones(3)])
    close(dx, [32.0] * 3)


def test_one_input_one_output(pull):
    y, (dx,) = pull(log1pexp, [X])
    expected, (expected_dx,) = pull(tf.math.softplus, [X])
    close(y, expected)
    np.testing.assert_allclose(dx, expected_dx, rtol=1e-5)


RETURNS = {
    "by position": lambda dx, dy: (dx, dy),
    "a list": lambda dx, dy: [dx, dy],
    "by name": lambda dx, dy: {"y": dy, "x": dx},
}


@pytest.mark.parametrize("returns", RETURNS)
def test_cotangents_may_come_by_position_or_by_name(returns, pull):
    @pb.custom_gradient
    def f(x, y):
        def grad(dz):
            return RETURNS[returns](dz * y, dz * x)

        return x * y, grad

    _, gradients = pull(f, [X, Y], [tf.constant([1.0, 2.0, 3.0])])
    close(gradients, [Y * [1.0, 2.0, 3.0], X * [1.0, 2.0, 3.0]])


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_statics_need_no_slot_and_may_have_one(slots, pull):
    @pb.custom_gradient
    def power(x, n, name="p"):
        def grad(dy):
            return (dy * n * x ** (n - 1), None, None)[:slots] if slots > 1 else dy * n * x ** (n - 1)

        return x**n, grad

    _, (dx,) = pull(lambda x: power(x, 3), [X], [tf.constant([1.0, 2.0, 3.0])])
    close(dx, 3 * X**2 * [1.0, 2.0, 3.0])


def test_none_means_no_gradient(pull):
    @pb.custom_gradient
    def f(x, y):
        def grad(dz):
            return dz * y, None

        return x * y, grad

    if pull.__name__ == "eager":
        _, (dx, dy) = pull(f, [X, Y], [tf.ones(3)])
        assert dy is None
    else:

        def connected(x, y):  # a tf.function cannot return None for a tensor: give y another way
            return f(x, y) + 0 * y

        _, (dx, dy) = pull(connected, [X, Y], [tf.ones(3)])
        close(dy, [0.0] * 3)
    close(dx, Y)


def test_a_bare_none_is_no_gradient_and_a_forgotten_return_is_an_error():
    @pb.custom_gradient
    def silent(x):
        def grad(dy):
            return None

        return x * 2, grad

    @pb.custom_gradient
    def forgotten(x):
        def grad(dy):
            dy * 2

        return x * 2, grad

    assert eager_gradient(silent, X) is None
    with pytest.raises(pb.errors.CotangentCountError, match="without a return statement"):
        eager_gradient(forgotten, X)


def eager_gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def test_a_structure_as_argument_gets_its_cotangent_as_that_structure(pull):
    @pb.custom_gradient
    def f(params, x):
        def grad(dy):
            return {"w": dy * x, "b": [dy, None]}, dy * params["w"]

        return params["w"] * x + params["b"][0], grad

    def run(w, b, x):
        return f({"w": w, "b": [b, 7]}, x)

    _, gradients = pull(run, [X, Y, X + 1], [tf.constant([1.0, 2.0, 3.0])])
    dy = np.array([1.0, 2.0, 3.0])
    close(gradients, [dy * (X + 1), dy, dy * X])


@pytest.mark.parametrize("container", [list, tuple])
def test_a_lone_list_argument_takes_a_list(container, pull):
    @pb.custom_gradient
    def total(parts):
        def grad(dy):
            return [dy * (i + 1) for i in range(len(parts))]

        return sum((i + 1) * p for i, p in enumerate(parts)), grad

    _, gradients = pull(lambda a, b: total(container([a, b])), [X, Y], [tf.ones(3)])
    close(gradients, [[1.0] * 3, [2.0] * 3])


def test_star_arguments_have_a_slot_each(pull):
    @pb.custom_gradient
    def total(*parts):
        def grad(dy):
            return [dy * (i + 1) for i in range(len(parts))]

        return sum((i + 1) * p for i, p in enumerate(parts)), grad

    _, gradients = pull(lambda a, b: total(a, b), [X, Y], [tf.ones(3)])
    close(gradients, [[1.0] * 3, [2.0] * 3])


def test_star_arguments_by_name():
    @pb.custom_gradient
    def total(*parts, **named):
        def grad(dy):
            return {"parts": [dy, 2 * dy], "c": 3 * dy}

        return parts[0] + 2 * parts[1] + 3 * named["c"], grad

    with tf.GradientTape() as tape:
        tape.watch([X, Y])
        y = total(X, Y, c=X)
    dx, dy = tape.gradient(y, [X, Y])
    close(dx, [4.0] * 3)
    close(dy, [2.0] * 3)


def test_statics_among_the_outputs_pass_through(wrap):
    @pb.custom_gradient
    def f(x):
        def grad(dy, _):
            return dy * 2

        return x * 2, "label", grad

    labels = []

    @wrap
    def run(x):
        y, label = f(x)
        labels.append(label)
        return y

    assert eager_gradient(run, X).numpy().tolist() == [2.0] * 3
    assert labels == ["label"]


def test_an_unused_output_has_a_zero_cotangent(pull):
    @pb.custom_gradient
    def f(x):
        def grad(da, db):
            return 2 * da + 100 * db

        return 2 * x, 100 * x, grad

    _, (dx,) = pull(lambda x: f(x)[0], [X], [tf.ones(3)])
    close(dx, [2.0] * 3)


def test_the_same_tensor_twice_gets_both_cotangents(pull):
    @pb.custom_gradient
    def f(x, y):
        def grad(dz):
            return 2 * dz, 5 * dz

        return 2 * x + 5 * y, grad

    _, (dx,) = pull(lambda x: f(x, x), [X], [tf.ones(3)])
    close(dx, [7.0] * 3)


def test_an_input_handed_through_is_still_an_output_of_its_own(pull):
    @pb.custom_gradient(differs="reversal")
    def reverse(x):
        def grad(dy):
            return -dy

        return x, grad

    _, (dx,) = pull(lambda x: reverse(x) + 10 * x, [X], [tf.ones(3)])
    close(dx, [9.0] * 3)


def test_one_tensor_returned_as_two_outputs(pull):
    @pb.custom_gradient
    def twice(x):
        y = 2 * x

        def grad(da, db):
            return da + 10 * db

        return y, y, grad

    _, (dx,) = pull(twice, [X], [tf.ones(3), tf.ones(3)])
    close(dx, [11.0] * 3)


def test_a_method_can_be_a_rule(wrap):
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @pb.custom_gradient
        def __call__(self, x):
            def grad(dy):
                return self.factor * dy

            return self.factor * x, grad

    assert eager_gradient(wrap(Scale(3.0).__call__), X).numpy().tolist() == [3.0] * 3


def test_the_function_keeps_its_name_and_documentation_and_shows_its_rule():
    @pb.custom_gradient(differs="teaching")
    def documented(x, *, k=2):
        """Say something."""

        def grad(dy):
            return dy

        return x, grad

    assert documented.__name__ == "documented"
    assert documented.__doc__ == "Say something."
    text = repr(documented.rule)
    assert text.startswith("<rule documented(x, k) · different on purpose: teaching · test_forms.py:")


@dataclasses.dataclass
class Nest:
    """A structure that says how TensorFlow takes it apart; `n` is no part of it."""

    a: Any
    b: Any
    n: int = 2

    def __tf_flatten__(self):
        return (self.n,), (self.a, self.b)

    @classmethod
    def __tf_unflatten__(cls, metadata, parts):
        return cls(*parts, *metadata)


@pytest.mark.parametrize("mode", [lambda f: f, tf.function], ids=["eager", "graph"])
def test_a_dataclass_that_tf_nest_takes_apart_is_a_structure(mode):
    @pb.custom_gradient
    def product(nest):
        return nest.a * nest.b * nest.n, lambda dy: Nest(dy * nest.b * nest.n, dy * nest.a * nest.n, nest.n)

    with tf.GradientTape() as tape:
        tape.watch([X, Y])
        out = mode(lambda x, y: product(Nest(x, y)))(X, Y)
    for found, expected in zip(tape.gradient(out, [X, Y]), [2 * Y, 2 * X]):
        close(found, expected)


def test_a_dataclass_that_tf_nest_takes_apart_is_a_structure_of_outputs():
    both = pb.custom_gradient(lambda x: (Nest(2 * x, 3 * x), lambda d: 2 * d.a + 3 * d.b))
    with tf.GradientTape() as tape:
        tape.watch(X)
        out = both(X)
    assert isinstance(out, Nest)
    close(tape.gradient(out.b, X), [3.0, 3.0, 3.0])
