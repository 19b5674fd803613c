"""The checker verifies what each replacement claims, and lists what differs on purpose."""

import pytest
import tensorflow as tf

import pullback as pb

X = tf.constant([[0.5, -1.0, 2.0], [0.3, 0.7, -0.2]])

CLAIMS = {
    "with_gradient": (pb.with_gradient(tf.exp, lambda dy, x, output: dy * output), [X], "exact"),
    "surrogate": (pb.surrogate(tf.sign, like=tf.tanh), [X], "like"),
    "straight_through": (pb.straight_through(tf.round), [X], "like"),
    "heaviside": (pb.heaviside, [X], "like"),
    "sign": (pb.sign, [X], "like"),
    "round": (pb.round, [X], "like"),
    "argmax_one_hot": (pb.argmax_one_hot, [X], "like"),
    "scale_gradient": (pb.scale_gradient, [X, 3.0], "like"),
    "reverse_gradient": (pb.reverse_gradient, [X, 0.5], "like"),
    "finite_gradient": (pb.finite_gradient, [X], "differs"),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_the_claim_is_verified(name):
    function, arguments, kind = CLAIMS[name]
    report = pb.check(function, *arguments, seed=1, xla=False, export=False)
    assert report.verdict == "right", report.failures
    assert function.rule.intent.kind == kind
    assert ("different on purpose" in report.intent) == (kind == "differs")


def test_a_wrong_replacement_is_called_wrong():
    report = pb.check(pb.with_gradient(tf.exp, lambda dy, x: dy * x), X, seed=1)
    assert report.verdict == "wrong"


def test_a_wrong_reversal_would_be_seen():
    wrong = pb.custom_gradient(like=lambda x: -0.5 * x)(lambda x: (x, lambda dy: -dy))
    assert pb.check(wrong, X, seed=1).causes == ["constant-factor"]


def test_a_function_that_uses_one_is_listed_as_different_on_purpose():
    report = pb.check(lambda x: tf.sin(pb.clip_gradient(x, norm=0.5)), X, seed=1, xla=False, export=False)
    assert report.verdict == "right"
    assert report.intent.startswith("different on purpose: it uses clip_gradient")
    assert report.capabilities["forward"] == "refused"
