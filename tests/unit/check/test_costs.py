"""What a check does not ask for, because it is known already."""

import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb
from pullback import hosts
from pullback.checker.causes import transposed
from pullback.checker.evidence import Evidence
from pullback.checker.settings import Settings
from pullback.hosts.tensorflow import private
from pullback.view import subject_of

X = torch.tensor([0.3, -1.2, 0.7, 2.1], dtype=torch.float64)


@pb.custom_gradient
def cubes(x):
    return x**3, lambda dy: 2 * x**2 * dy


@pb.custom_gradient
def sums(x):
    return torch.cumsum(x, 0), lambda dy: torch.cumsum(dy, 0)


@pytest.mark.parametrize(("rule", "asked"), [(cubes, False), (sums, True)])
def test_a_whole_jacobian_is_asked_for_only_where_gradients_leave_it_open(rule, asked):
    evidence = Evidence(subject_of(hosts.among([X], rule, "rule"), rule, (X,), {}), Settings(seed=0))
    assert (transposed.search(evidence) is not None) is asked
    assert ("jacobians" in vars(evidence)) is asked


@pytest.mark.parametrize("function", [lambda x, w: x * w, lambda x, w: tf.gather(x, [1]), lambda x, w: w + 0])
@pytest.mark.parametrize("held", [tf.identity, tf.Variable])
def test_gradients_are_those_of_the_tape(function, held):
    sources = [tf.constant([1.0, 2.0]), held(tf.constant([3.0, 4.0]))]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources[0])
        tape.watch(sources[1])
        outputs = [function(*sources)]
    cotangents = [tf.ones_like(outputs[0]) * 3]
    expected = tape.gradient(outputs, sources, output_gradients=cotangents)
    for found, there in zip(private.gradients(tape, outputs, sources, cotangents), expected, strict=True):
        assert type(found) is type(there)
        if there is not None:
            np.testing.assert_array_equal(tf.convert_to_tensor(found), tf.convert_to_tensor(there))
