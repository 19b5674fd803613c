"""The recorder sees every spelling of a custom gradient, and changes nothing."""

import os

import keras
import numpy as np
import pytest
import tensorflow as tf

import pullback as pb
from pullback.record.listening import recording
from pullback.record.recorder import Recorder
from pullback.record.sample import Spec


@pytest.fixture
def recorder():
    return Recorder()


@tf.custom_gradient
def before(x):
    def grad(dy):
        return 2 * x * dy

    return x * x, grad


def only(recorder):
    (rule,) = recorder.rules.values()
    return rule


def samples(recorder):
    return list(only(recorder).samples.values())


def test_a_rule_made_before_the_recording_is_seen(recorder):
    with recording(recorder):
        before(tf.constant([1.0, 2.0]))
    before(tf.constant([[1.0]]))
    rule = only(recorder)
    assert (rule.name, rule.kind, rule.calls) == ("before", "tf.custom_gradient", 1)
    assert rule.path.endswith("test_recorder.py")
    assert rule.line > 0
    np.testing.assert_array_equal(samples(recorder)[0].leaves[0], [1.0, 2.0])


def quantised(x):
    @tf.custom_gradient
    def rounded(x):
        return tf.round(x), lambda dy: dy

    return rounded(x)


def test_a_rule_that_autograph_rewrote_has_its_name_and_its_line(recorder):
    with recording(recorder):
        tf.function(lambda x: quantised(x))(tf.ones([2]))
    rule = only(recorder)
    assert rule.name == "quantised.rounded"
    assert rule.qualified.endswith("test_recorder.quantised.rounded")
    assert rule.path == os.path.abspath(__file__)
    assert rule.line == quantised.__code__.co_firstlineno + 1


def test_keras_spelling_is_seen(recorder):
    @keras.ops.custom_gradient
    def twice(x):
        def grad(dy):
            return 2 * dy

        return 2 * x, grad

    with recording(recorder):
        twice(tf.ones([2]))
    assert only(recorder).name == "test_keras_spelling_is_seen.twice"


def test_the_makers_are_seen_with_the_line_that_made_them(recorder):
    with recording(recorder):
        tf.grad_pass_through(tf.round)(tf.ones([2]))
        tf.recompute_grad(lambda x: x * x)(tf.ones([2]))
    kinds = {rule.kind: rule for rule in recorder.rules.values()}
    assert set(kinds) == {"tf.grad_pass_through", "tf.recompute_grad"}
    assert kinds["tf.grad_pass_through"].name == "tf.grad_pass_through(round)"
    assert all(rule.path == __file__ for rule in kinds.values())


def test_own_rules_are_seen_with_keywords(recorder):
    @pb.custom_gradient
    def scaled(x, factor):
        def grad(dy):
            return dy * factor

        return x * factor, grad

    with recording(recorder):
        scaled(tf.ones([2]), factor=3.0)
    args, kwargs = samples(recorder)[0].arguments()
    assert kwargs == {"factor": 3.0}
    assert len(args) == 1


def test_a_method_is_seen_without_its_self(recorder):
    class Owner:
        @tf.custom_gradient
        def method(self, x):
            return x * 2, lambda dy: dy * 2

    with recording(recorder):
        Owner().method(tf.ones([2]))
    assert samples(recorder)[0].describe() == "float32[2]"


def test_the_frameworks_own_rules_are_left_out_unless_asked(recorder):
    everything = Recorder(everything=True)
    with recording(recorder), recording(everything):
        tf.nn.silu(tf.ones([2]))
    assert not recorder.rules
    assert everything.rules


def test_traced_calls_give_specs_and_values_replace_them(recorder):
    traced = tf.function(lambda x: before(x), input_signature=[tf.TensorSpec([None, 3])])
    with recording(recorder):
        traced(tf.ones([2, 3]))
        assert samples(recorder)[0].leaves == [Spec((None, 3), "float32")]
        for n in (1, 2, 3):
            before(tf.ones([n]))
    assert [s.describe() for s in samples(recorder)] == ["float32[1]", "float32[2]", "float32[3]"]


def test_signatures_differ_by_structure_shape_dtype_and_statics(recorder):
    recorder.limit = 10

    @pb.custom_gradient
    def power(x, n=1):
        return x**n, lambda dy: n * x ** (n - 1) * dy

    with recording(recorder):
        for x in (tf.ones([2]), tf.ones([2]) * 3, tf.ones([3]), tf.ones([2], tf.float64)):
            power(x)
        power(tf.ones([2]), 2)
        power(tf.ones([2]), n=2)
    assert only(recorder).calls == 6
    assert len(samples(recorder)) == 5


def test_at_most_three_signatures_are_kept(recorder):
    with recording(recorder):
        for n in range(1, 9):
            before(tf.ones([n]))
        before(tf.ones([2]))
    assert only(recorder).calls == 9
    assert len(samples(recorder)) == 3
    assert only(recorder).unchecked == 5


def test_calls_that_differ_in_an_object_alone_are_of_one_kind(recorder):
    @tf.custom_gradient
    def around(x, *, f):
        return f(x), lambda dy: dy

    with recording(recorder):
        for _ in range(5):
            around(tf.ones([2]), f=lambda x: x)
    assert only(recorder).unchecked == 0


def test_values_and_gradients_are_those_of_the_program(recorder):
    x = tf.Variable([1.0, -2.0])

    def run():
        with tf.GradientTape() as tape:
            y = before(x) + tf.grad_pass_through(tf.round)(x)
        return y.numpy().tolist(), tape.gradient(y, x).numpy().tolist()

    plain = run()
    with recording(recorder):
        assert run() == plain
    assert run() == plain


def test_exceptions_are_those_of_the_program(recorder):
    @tf.custom_gradient
    def fails(x):
        raise KeyError("mine")

    with recording(recorder), pytest.raises(KeyError, match="mine"):
        fails(tf.ones([2]))


def test_a_mistake_of_the_recorder_does_not_reach_the_program():
    def broken(leaf):
        raise RuntimeError("the recorder's")

    recorder = Recorder(broken, broken)
    with recording(recorder):
        assert before(tf.constant(3.0)).numpy() == 9.0
    assert only(recorder).lost == {"RuntimeError: the recorder's": 1}


def test_changed_arrays_do_not_change_the_sample(recorder):
    given = np.ones(2, np.float32)
    with recording(recorder):
        before(given)
    given[:] = 7
    np.testing.assert_array_equal(samples(recorder)[0].leaves[0], [1.0, 1.0])


def test_the_limit_of_calls_is_told_once():
    told = []
    recorder = Recorder(calls=2, full=lambda: told.append(1))
    with recording(recorder):
        for _ in range(4):
            before(tf.ones([2]))
    assert told == [1]
