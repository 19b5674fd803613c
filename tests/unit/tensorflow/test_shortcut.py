"""The shorter way of a call: open to bodies that reach nothing, closed as soon as they do."""

import pytest
import tensorflow as tf

import pullback as pb
from pullback.errors import (
    CapturedTensorError,
    CotangentShapeError,
    SecondOrderError,
    VectorConditionError,
)

X = tf.constant([0.3, -0.7])
WEIGHT = tf.constant(2.0)


def double(x):
    return 2 * x


def by_weight(x):
    return WEIGHT * x


helper = double


@pb.custom_gradient
def by_helper(x):
    return helper(x), lambda dy: dy * 2


@pb.custom_gradient
def sine(x):
    return tf.sin(x), lambda dy: dy * tf.cos(x)


def gradient(rule, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = rule(*inputs)
    return tape.gradient(outputs, inputs)


@pytest.fixture(autouse=True)
def unknown():
    """Let every test begin with rules that have not been called."""
    for rule in (by_helper, sine):
        rule.rule.shortcuts.clear()
        rule.rule.memo.clear()
        rule.rule.plans.clear()


def test_a_rule_that_reaches_nothing_takes_it_from_the_second_recorded_call_on():
    sine(X)
    assert not sine.rule.shortcuts
    for call in range(3):
        (dx,) = gradient(sine, X)
        assert dx.numpy() == pytest.approx(tf.cos(X).numpy())
        assert bool(sine.rule.shortcuts) == (call > 0)


def test_an_example_keeps_no_rule_from_it():
    for _ in range(3):
        gradient(pb.ops.silu, X)
    assert pb.ops.silu.rule.shortcuts[1, type(X)]


def test_a_call_with_constants_takes_one_for_each_of_them():
    @pb.custom_gradient
    def power(x, exponent, *, scale=1.0):
        return scale * x**exponent, lambda dy: dy * scale * exponent * x ** (exponent - 1)

    for _ in range(3):
        for exponent, scale in ((2, 0.5), (3, 0.5), (2, 2.0)):
            (dx,) = gradient(lambda x, n=exponent, s=scale: power(x, n, scale=s), X)
            assert dx.numpy() == pytest.approx((scale * exponent * X ** (exponent - 1)).numpy())
    assert len(power.rule.shortcuts) == 3
    (second,) = gradient(lambda x: gradient(lambda x: power(x, 3, scale=0.5), x), X)
    assert second.numpy() == pytest.approx((3 * X).numpy())


def test_what_one_constant_does_is_not_what_another_does():
    @pb.custom_gradient
    def noisy(x, noise):
        y = x + tf.random.normal([2]) if noise else x + 0
        return y * y, lambda dy: 2 * dy * y

    for _ in range(3):
        gradient(lambda x: noisy(x, False), X)
    for _ in range(3):
        with pytest.raises(SecondOrderError, match="random"):
            gradient(lambda x: gradient(lambda x: noisy(x, True), x), X)


def test_a_name_that_means_something_else_closes_it(monkeypatch):
    for _ in range(3):
        gradient(by_helper, X)
    assert by_helper.rule.shortcuts
    monkeypatch.setitem(globals(), "helper", by_weight)
    with tf.GradientTape() as tape:
        tape.watch([X, WEIGHT])
        with pytest.raises(CapturedTensorError, match="WEIGHT"):
            by_helper(X)
    assert not by_helper.rule.shortcuts


def test_a_structure_is_returned_as_it_is():
    @pb.custom_gradient
    def both(x):
        def grad(dy):
            return 2 * dy["twice"] + 3 * dy["rest"][0]

        return {"twice": 2 * x, "rest": (3 * x, "three")}, grad

    for _ in range(4):
        with tf.GradientTape() as tape:
            tape.watch(X)
            result = both(X)
        assert result["rest"][1] == "three"
        assert tape.gradient([result["twice"], result["rest"][0]], X).numpy() == pytest.approx([5, 5])
    assert both.rule.shortcuts


def test_it_has_the_second_order_forward_mode_and_graphs():
    for _ in range(3):
        gradient(sine, X)
    (second,) = gradient(lambda x: gradient(sine, x), X)
    assert second.numpy() == pytest.approx(-tf.sin(X).numpy())
    with tf.autodiff.ForwardAccumulator(X, tf.ones(2)) as accumulator:
        y = sine(X)
    assert accumulator.jvp(y).numpy() == pytest.approx(tf.cos(X).numpy())
    # a constant in a graph is an eager tensor
    assert tf.function(lambda: sine(X))().numpy() == pytest.approx(tf.sin(X).numpy())


def test_the_contract_holds_on_it():
    @pb.custom_gradient
    def summed(x):
        return x * 2, lambda dy: tf.reduce_sum(dy * x)

    for _ in range(3):
        with pytest.raises(CotangentShapeError, match=r"shape \(\) for argument `x` of shape \(2,\)"):
            gradient(summed, X)
    assert summed.rule.shortcuts


def test_an_error_of_the_body_is_explained_and_the_tapes_record_again():
    @pb.custom_gradient
    def switching(x):
        y = x if x > 0 else -x
        return y, lambda dy: dy * tf.sign(x)

    for _ in range(3):
        gradient(switching, X[0])
    assert switching.rule.shortcuts
    with tf.GradientTape() as tape:
        tape.watch(X)
        with pytest.raises(VectorConditionError, match="switching"):
            switching(X)
        y = X * 2
    assert tape.gradient(y, X).numpy() == pytest.approx([2, 2])


def test_variables_keywords_and_integers_go_the_long_way():
    for _ in range(3):
        gradient(sine, X)
    w = tf.Variable(X)
    (dw,) = gradient(sine, w)
    assert dw.numpy() == pytest.approx(tf.cos(X).numpy())
    (dx,) = gradient(lambda x: sine(x=x), X)
    assert dx.numpy() == pytest.approx(tf.cos(X).numpy())
    with pytest.raises(tf.errors.InvalidArgumentError):
        sine(tf.constant([1, 2]))
