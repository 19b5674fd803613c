"""Whatever is given to `check`, the answer is a verdict or a clear error."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb
import pullback.checker

X = tf.constant([0.5, -1.0])


@pytest.mark.parametrize(
    ("function", "argument", "sentence"),
    [
        (lambda a: a * 2, tf.constant([1, 2]), "no input is floating or complex"),
        (tf.sin, tf.constant([np.nan, 1.0]), "not finite"),
        (tf.sin, tf.zeros([0]), "no entries"),
        (lambda a: a * tf.random.uniform([2]), X, "another value on a second call"),
        (lambda a: None, X, "no floating or complex tensor"),
        (tf.argmax, X, "no floating or complex tensor"),
    ],
    ids=["integers", "NaN", "empty", "random", "None", "integer output"],
)
def test_what_cannot_be_decided_says_why(function, argument, sentence):
    report = pb.check(function, argument, seed=1)
    assert report.verdict == "undecided"
    assert any(sentence in f.sentence for f in report.findings)


@pytest.mark.parametrize(
    ("function", "argument", "error"),
    [
        (lambda a: a, 3, pb.errors.NoTensorError),
        (3, X, pb.errors.DefinitionError),
        (lambda a: a * 2, tf.ragged.constant([[1.0], [2.0, 3.0]]), pb.errors.NoTensorError),
        (lambda a: 1 / 0, X, ZeroDivisionError),
    ],
    ids=["no tensor", "no function", "ragged", "raises"],
)
def test_what_cannot_be_run_is_an_error(function, argument, error):
    with pytest.raises(error):
        pb.check(function, argument, seed=1)


@pytest.mark.parametrize("argument", [0.5, [0.5, 1.0], np.array([0.5, 1.0]), tf.Variable([0.5])], ids=str)
def test_numbers_lists_arrays_and_variables_are_inputs(argument):
    assert pb.check(tf.sin, argument, seed=1, export=False, xla=False).verdict == "right"


def test_a_list_of_numbers_beside_a_tensor_is_handed_on_as_it_is():
    def weighted(x, weights):
        assert weights == [0.5, 2.0]
        return x * weights[0] + x * weights[1]

    report = pb.check(weighted, tf.constant([1.0, 2.0]), [0.5, 2.0], seed=1, export=False, xla=False)
    assert report.verdict == "right"


def test_one_wrong_entry_in_a_million_is_found_and_its_index_named():
    mask = np.ones(10**6)
    mask[123456] = 0.0

    @pb.custom_gradient
    def holed(x):
        return tf.sin(x), lambda dy: dy * tf.cos(x) * tf.constant(mask)

    report = pb.check(holed, tf.constant(np.random.default_rng(0).normal(size=10**6)), seed=1)
    assert report.verdict == "wrong"
    assert "index 123456" in report.failures[0].sentence
