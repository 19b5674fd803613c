"""A stable rule is told apart from the autodiff of its body."""

import tensorflow as tf
import torch

import pullback as pb
import pullback.checker


@pb.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


def test_the_size_from_which_autodiff_fails_is_found():
    report = pb.check(log1pexp, tf.constant([0.5, -1.0, 2.0]), seed=1)
    (note,) = [f for f in report.findings if f.probe == "extremes"]
    assert note.sentence.startswith(
        "the rule is right and autodiff of the body is not: not finite at x ≥ 88.7"
    )
    assert report.verdict == "right"


def test_nothing_is_said_of_a_rule_that_needs_no_rescue():
    sine = pb.custom_gradient(lambda x: (tf.sin(x), lambda dy: dy * tf.cos(x)))
    report = pb.check(sine, tf.constant([0.5, -1.0, 2.0]), seed=1)
    assert not [f for f in report.findings if f.probe == "extremes"]


def test_so_it_is_of_complex_inputs():
    @pb.custom_gradient
    def softplus(x):
        e = torch.exp(x)
        return torch.log(1 + e), lambda dy: dy * torch.conj(1 - 1 / (1 + e))

    report = pb.check(softplus, torch.tensor([0.5 + 0.2j, -1.0 + 1.0j]), seed=1, export=False)
    (note,) = [f for f in report.findings if f.probe == "extremes"]
    assert note.sentence.endswith("not finite at x ≥ 88.73")


def test_the_parts_of_a_complex_gradient_are_all_compared(recwarn):
    @pb.custom_gradient
    def squared_size(x):
        return x.real**2 + x.imag**2, lambda dy: 2 * dy * x

    pb.check(squared_size, torch.tensor([0.5 + 0.2j, -1.0 + 1.0j]), seed=1, export=False)
    assert not recwarn.list
