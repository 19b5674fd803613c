"""Variables that a rule of TensorFlow reads are its inputs, and a check leaves every variable as it was."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

QUICK = {"xla": False, "export": False}
X = tf.constant(np.random.default_rng(0).normal(size=(2, 4)), tf.float32)


def reading(factor):
    """Give a rule that reads a variable, whose gradient is this many times the derivative."""
    weight = tf.Variable(np.random.default_rng(1).normal(size=(4, 3)), dtype=tf.float32)

    @tf.custom_gradient
    def layer(x):
        def grad(dy, variables):
            return dy @ tf.transpose(weight), [factor * tf.transpose(x) @ dy]

        return x @ weight, grad

    return layer, weight


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "right"), (2.0, "wrong")])
def test_the_gradient_of_a_variable_that_a_rule_reads_is_checked(factor, verdict):
    layer, weight = reading(factor)
    before = weight.numpy()
    report = pb.check(layer, X, seed=0, **QUICK)
    assert report.verdict == verdict
    assert [f.where for f in report.failures] == ["`weight`"] * (verdict == "wrong")
    np.testing.assert_array_equal(weight, before)


def test_a_reproducer_names_the_variable(capsys):
    layer, weight = reading(2.0)
    (failure,) = pb.check(layer, X, seed=0, **QUICK).failures
    exec(failure.reproducer, {"layer": layer, "weight": weight})
    said = capsys.readouterr().out.splitlines()[-1].replace(",", "").split()
    assert float(said[-1]) == pytest.approx(2 * float(said[-3]), rel=1e-2)


def test_a_variable_that_is_handed_over_is_one_input():
    weight = tf.Variable([0.5, -1.0, 2.0, 0.3])

    @tf.custom_gradient
    def scaled(x, w):
        return x * w, lambda dy: (dy * w, tf.reduce_sum(dy * x, 0))

    assert pb.check(scaled, X, weight, seed=0, **QUICK).verdict == "right"


def test_a_layer_that_is_called_wrong_keeps_its_weights():
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * x

    class Squared(tf.keras.layers.Dense):
        def call(self, x):
            return square(super().call(x))

    layer = Squared(3)
    layer(X)
    before = layer.get_weights()
    assert pb.check(layer, X, seed=0, **QUICK).verdict == "wrong"
    for now, then in zip(layer.get_weights(), before):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "right"), (2.0, "wrong")])
def test_so_is_that_of_a_rule_of_pullback_and_of_a_method(factor, verdict):
    weight = tf.Variable([0.3, -0.8, 1.7, 0.4])

    @pb.custom_gradient
    def scaled(x):
        def grad(dy, variables=None):
            return dy * weight, [factor * tf.reduce_sum(dy * x, 0)]

        return x * weight, grad

    class Layer(tf.keras.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=shape[-1:], initializer="ones")

        @pb.custom_gradient
        def scaled(self, x):
            def grad(dy, variables=None):
                return dy * self.kernel, [factor * tf.reduce_sum(dy * x, 0)]

            return x * self.kernel, grad

        def call(self, x):
            return self.scaled(x)

    layer = Layer()
    layer(X)
    for function in (scaled, layer.scaled, layer):
        report = pb.check(function, X, seed=0, **QUICK)
        assert (report.verdict, len(report.failures)) == (verdict, verdict == "wrong")
    np.testing.assert_array_equal(layer.kernel, tf.ones(4))
    np.testing.assert_array_equal(weight, tf.constant([0.3, -0.8, 1.7, 0.4]))
