"""Every kind of callable can be checked, intent is honoured, and bad input gets a clear answer."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from zoo import constant, normal, positive

from pullback.checker import check
from pullback.errors import NoTensorError
from pullback.rule import Intent, Rule

X = normal(5)


def declared(body, **more):
    """Make a rule as the decorator does: a plain function with an attribute `rule`."""
    native = tf.custom_gradient(body)

    def function(*args):
        return native(*args)

    function.rule = Rule(body, body.__name__, inspect.signature(body), **more)
    return function


def round_through(x):
    return tf.round(x), lambda d: d


def spike(x):
    return tf.cast(x > 0, x.dtype), lambda d: d * tf.sigmoid(x) * (1 - tf.sigmoid(x))


def clipped(x):
    return tf.identity(x), lambda d: tf.clip_by_value(d, -1, 1)


def test_a_declared_difference_is_not_wrong():
    report = check(declared(round_through, intent=Intent("differs", reason="straight-through")), X, seed=1)
    assert report.verdict == "right"
    assert any("straight-through" in f.sentence for f in report.findings)


def test_a_declared_difference_may_be_nonlinear():
    report = check(declared(clipped, intent=Intent("differs", reason="clipped")), X, seed=1)
    assert report.verdict == "right"
    assert any(f.probe == "linearity" for f in report.findings)


def test_a_rule_like_another_function_is_checked_against_it():
    assert check(declared(spike, intent=Intent("like", tf.sigmoid)), X, seed=1).verdict == "right"
    assert check(declared(spike, intent=Intent("like", tf.tanh)), X, seed=1).verdict == "wrong"


def test_a_first_order_rule_is_not_asked_for_the_second():
    def sine(x):
        k = tf.stop_gradient(tf.cos(x))
        return tf.sin(x), lambda d: d * k

    report = check(declared(sine, order=1), X, seed=1)
    assert report.verdict == "right"
    assert report.capabilities["second order"] == "refused"


def test_the_weights_of_a_layer_are_inputs():
    class Scale(keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

        def call(self, x):
            @tf.custom_gradient
            def scale(x, w):
                return x * w, lambda d: (d * w, 2 * tf.reduce_sum(d * x, 0))

            return scale(x, tf.convert_to_tensor(self.w))

    report = check(Scale(), normal(3, 4), seed=1)
    assert report.causes == ["constant-factor"]
    assert "scale" in report.failures[0].sentence


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (keras.layers.Dense(3, activation="tanh"), (normal(2, 5),)),
        (keras.losses.Huber(), (normal(3, 4), normal(3, 4, seed=1))),
        (lambda s, x: x * len(s), ("word", X)),
        (lambda x, k: x**k, (X, 3)),
        (lambda x: tf.identity(x) * 2, ([1.0, 2.0, 3.0],)),
        (lambda x: x * 2, (tf.Variable([1.0, 2.0]),)),
        (lambda x: tf.identity(x) * 2, (np.float32(3.0),)),
        (tf.recompute_grad(lambda x: tf.sin(x) * x), (X,)),
        (lambda x: x * x, (tf.cast(X, tf.bfloat16),)),
        (lambda x: x * tf.constant(2.0), (X,)),
    ],
    ids=[
        "layer",
        "loss",
        "string",
        "integer",
        "list",
        "variable",
        "scalar",
        "recompute",
        "bfloat16",
        "only float32",
    ],
)
def test_any_callable_can_be_right(function, args):
    assert check(function, *args, seed=1).verdict == "right"


def test_a_rule_called_by_keyword_is_never_used():
    @tf.custom_gradient
    def double(x):
        return x * x, lambda d: 3 * d * x

    report = check(double, x=X, seed=1)
    assert report.causes == ["rule-unused"]


def test_a_random_gradient_is_non_deterministic():
    @tf.custom_gradient
    def dropout(x):
        return x * 1, lambda d: d * tf.cast(tf.random.uniform(tf.shape(x)) > 0.5, x.dtype)

    assert check(dropout, normal(20), seed=1).causes == ["non-deterministic"]


def test_a_random_forward_is_stateful():
    @tf.custom_gradient
    def noisy(x):
        return x * tf.random.uniform(tf.shape(x), dtype=x.dtype), lambda d: d

    assert check(noisy, normal(20), seed=1).causes == ["stateful-forward"]


@pytest.mark.parametrize("wrong", [lambda d: d[100], lambda d: (d, d), lambda d: tf.zeros([3, 7])])
def test_a_pullback_that_breaks_the_contract_is_wrong(wrong):
    @tf.custom_gradient
    def sine(x):
        return tf.sin(x), wrong

    assert check(sine, X, seed=1).verdict == "wrong"


def test_python_in_the_gradient_has_no_second_order_but_is_not_wrong():
    @tf.custom_gradient
    def sine(x):
        y = tf.numpy_function(np.sin, [x], x.dtype)
        return y, lambda d: d * tf.numpy_function(np.cos, [x], x.dtype)

    report = check(sine, X, seed=1)
    assert report.verdict == "right"
    assert report.capabilities["second order"] == "no"


def test_the_stable_rule_is_told_from_autodiff():
    @tf.custom_gradient
    def soft(x):
        return tf.where(x > 50, x, tf.math.log(1 + tf.exp(x))), lambda d: d * tf.sigmoid(x)

    report = check(soft, constant([1.0, 2.0, -1.0]), seed=1)
    assert report.verdict == "right"
    assert any("autodiff of the body is not" in f.sentence for f in report.findings)


def test_a_wrapper_around_a_rule_is_a_rule_too():
    @tf.custom_gradient
    def exp(x):
        return tf.exp(x), lambda d: d

    report = check(lambda x: tf.reduce_sum(exp(x) * 2), positive(4), seed=1)
    assert report.verdict == "wrong"


@pytest.mark.parametrize("x", [tf.constant([1, 2, 3]), tf.zeros([0, 2]), tf.constant([np.nan, 1.0])])
def test_inputs_without_an_answer_are_undecided(x):
    assert check(tf.identity, x, seed=1).verdict == "undecided"


def test_no_tensor_at_all_is_an_error():
    with pytest.raises(NoTensorError, match="no argument is a tensor"):
        check(lambda x: x, 3)


def test_a_failure_prints_as_code_that_runs():
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda d: d * x

    report = check(cube, X, seed=1)
    exec(report.failures[0].reproducer, {"cube": cube})


def test_the_capability_table_is_whole():
    table = check(tf.sin, X, seed=1).capabilities
    for name in (
        "reverse",
        "second order",
        "forward",
        "tf.function",
        "jacobian",
        "float32",
        "float16",
        "bfloat16",
    ):
        assert table[name] == "yes", (name, table)
