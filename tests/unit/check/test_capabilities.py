"""The table of what a rule can do."""

import numpy as np
import tensorflow as tf

import pullback as pb
import pullback.checker

X = tf.constant([0.5, -1.0, 2.0])
EVERYTHING = {
    "reverse", "forward", "second order", "tf.function", "XLA", "jacobian",
    "float32", "float16", "bfloat16", "export",
}  # fmt: skip


def test_a_good_rule_can_do_everything():
    @pb.custom_gradient
    def cube(x):
        return x * x * x, lambda dy: 3 * dy * x * x

    table = pb.check(cube, X, seed=1).capabilities
    assert set(table) == EVERYTHING
    assert set(table.values()) == {"yes"}


def test_what_is_refused_by_design_is_told_from_what_fails():
    @pb.custom_gradient(order=1, differs="clipped")
    def clipped(x):
        return x * 1, lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    table = pb.check(clipped, X, seed=1).capabilities
    assert (table["second order"], table["forward"]) == ("refused", "refused")


def test_a_python_callback_cannot_be_exported_nor_compiled_by_xla():
    @pb.custom_gradient
    def sine(x):
        c = tf.numpy_function(lambda v: np.cos(v), [x], x.dtype)
        c.set_shape(x.shape)
        return tf.sin(x), lambda dy: dy * c

    table = pb.check(sine, X, seed=1).capabilities
    assert table["export"] == "no"
    assert table["XLA"] in ("no", "refused")
