"""Inputs that are made up: from examples, annotations, specs, or by trying."""

from typing import Literal

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb
from pullback.checker.settings import Settings
from pullback.errors import DefinitionError
from pullback.example import examples_of
from pullback.record.checking import NoInputsError, checked, with_inputs
from pullback.record.listening import recording
from pullback.record.modules import as_rule
from pullback.record.recorder import Recorder
from pullback.record.sample import Sample, Spec
from pullback.record.values import filled


def inputs(function):
    rule = with_inputs(as_rule(function), Settings(seed=1))
    return next(iter(rule.samples.values()))


@pytest.mark.parametrize(
    ("function", "described"),
    [
        (lambda x: tf.sin(x), "float32[3]"),
        (lambda x, w: tf.matmul(x, w), "float32[3,3], float32[3,3]"),
        (
            lambda x, w, b: tf.ensure_shape(tf.matmul(x, w) + b, [3, 2]),
            "float32[3,4], float32[4,2], float32[2]",
        ),
        (lambda x: tf.linalg.cholesky(x), "float32[3,3]"),
        (
            lambda labels, logits: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits),
            "int32[3], float32[3,4]",
        ),
        (lambda x: tf.math.log(x), "float32[3]"),
        (lambda x: x + tf.constant(1.0, tf.float64), "float64[3]"),
        (lambda *xs: xs[0] * 2, "float32[3]"),
        (lambda x, *, scale: x * tf.ensure_shape(scale, []), "float32[], float32[]"),
    ],
)
def test_usual_functions_are_called_by_trying(function, described):
    assert inputs(function).describe() == described


def test_annotations_are_read():
    def f(x: tf.TensorSpec([2, 5]), n: int, mode: Literal["sum", "mean"], scale: float = 1.0):
        return tf.reduce_sum(tf.ensure_shape(x, [2, 5])) * n if mode == "sum" else None

    assert inputs(f).describe() == "float32[2,5]"
    assert inputs(f).leaves[1:] == [2, "sum"]


def test_what_cannot_be_called_says_so():
    def refuses(x):
        raise ValueError("never")

    with pytest.raises(NoInputsError, match=r"refuses`.*never"):
        inputs(refuses)


@pytest.mark.parametrize("decorate", [tf.custom_gradient, pb.custom_gradient])
@pytest.mark.parametrize("above", [True, False])
def test_examples_stand_above_or_below(decorate, above):
    def f(x):
        return x * 2, lambda dy: dy * 2

    mark = pb.example(tf.constant([5.0]))
    marked = mark(decorate(f)) if above else decorate(mark(f))
    (((x,), kwargs),) = examples_of(marked)
    assert x.numpy() == [5.0]
    assert kwargs == {}
    np.testing.assert_array_equal(inputs(marked).leaves[0], [5.0])


def test_an_example_may_be_made():
    @pb.example(lambda: (np.ones(2), np.ones(3)))
    @pb.example(np.zeros(2), y=1)
    def f(x, y):
        return x

    made, given = examples_of(f)
    assert [a.shape for a in made[0]] == [(2,), (3,)]
    assert given[1] == {"y": 1}


def test_bad_examples_are_refused():
    with pytest.raises(DefinitionError, match="no arguments"):
        pb.example()
    with pytest.raises(DefinitionError, match="can carry no mark"):
        pb.example(1.0)(abs)


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "complex64", "int32", "uint8", "bool"]
)
def test_specs_are_filled_with_their_dtype(dtype):
    sample = Sample([Spec((None, 2), dtype)], None)
    for made in filled(sample, np.random.default_rng(0)):
        assert made.leaves[0].dtype.name == dtype
        assert made.leaves[0].shape == (3, 2)


def test_a_rule_that_was_only_traced_is_checked():
    @tf.custom_gradient
    def logarithm(x):
        return tf.math.log(x), lambda dy: dy / x

    rule = as_rule(logarithm)
    rule.samples["traced"] = Sample(
        [Spec((None,), "float32")],
        with_inputs(rule, Settings(seed=1)).samples.popitem()[1].structure,
        "tensorflow",
    )
    (entry,) = checked(rule, target="", settings=Settings(seed=1))
    assert entry.report.verdict == "right"


@pytest.mark.parametrize(("low", "verdict"), [(0.05, "right"), (7.0, "undecided")])
def test_values_are_made_up_so_that_the_gradient_works_as_in_the_program(low, verdict):
    @tf.custom_gradient
    def inside(x):
        def grad(dy):
            with tf.control_dependencies([tf.debugging.assert_less(tf.abs(x - low - 0.45), 0.47)]):
                return 2.0 * x * dy

        return x**2, grad

    @tf.function
    def step(x):
        return tf.gradients(inside(x), x)

    recorder = Recorder()
    with recording(recorder):
        step(tf.constant([low + 0.4, low + 0.5]))
    (rule,) = recorder.rules.values()
    (entry,) = checked(rule, target="", settings=Settings(seed=1, order=1))
    assert entry.report.verdict == verdict
