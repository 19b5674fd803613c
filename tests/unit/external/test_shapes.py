"""What a function returns is known before it runs, or found out by running it once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import pullback as pb
from pullback.errors import DefinitionError, ExternalError
from pullback.wrapping.shapes import ArraySpec

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "output",
    [
        lambda x: x,
        lambda x, power: x,
        lambda: np.empty((2, 3)),
        np.empty((2, 3)),
        jax.ShapeDtypeStruct((2, 3), np.float64),
        tf.TensorSpec((2, 3), tf.float64),
        ArraySpec((2, 3), np.dtype(np.float64)),
        lambda x: x.replace(shape=x.shape[::-1]).replace(shape=x.shape),
    ],
)
def test_every_way_to_say_it(output):
    f = pb.external(lambda x, power: x**power, output=output)
    static = tf.function(lambda x: f(x, 2)).get_concrete_function(tf.TensorSpec((2, 3), tf.float64))
    assert static.output_shapes == (2, 3)
    assert static.output_dtypes == tf.float64


def test_structures_are_declared_as_structures():
    f = pb.external(
        lambda x: {"sum": x.sum(), "all": (x, 1)},
        output=lambda x: {"sum": x.replace(()), "all": (x, np.empty((), int))},
    )
    found = tf.function(f)(tf.constant(X))
    assert found["sum"] == 15
    assert found["all"][0].shape == (2, 3)
    assert found["all"][1].dtype == tf.int64


def test_unknown_lengths_stay_unknown_and_known_ones_known():
    f = pb.external(lambda x: x[:, :1], output=lambda x: x.replace(shape=(x.shape[0], 1)))
    traced = tf.function(f).get_concrete_function(tf.TensorSpec((None, 3), tf.float64))
    assert traced.output_shapes.as_list() == [None, 1]
    assert traced(tf.constant(X)).shape == (2, 1)


def test_an_undeclared_output_costs_no_extra_run_where_there_are_values():
    calls = []
    f = pb.external(lambda x: calls.append(1) or x * 2)
    f(X), f(tf.constant(X)), f(jnp.asarray(X, jnp.float32))
    assert len(calls) == 3


def test_an_undeclared_output_is_found_out_once_where_there_are_none():
    calls = []
    f = pb.external(lambda x: calls.append(1) or x * 2)
    run = tf.function(f)
    run(tf.constant(X))
    assert len(calls) == 2
    run(tf.constant(X))
    assert len(calls) == 3


def test_a_length_that_is_not_known_needs_a_declaration():
    f = pb.external(lambda x: x * 2)
    with pytest.raises(ExternalError, match="output="):
        tf.function(f).get_concrete_function(tf.TensorSpec((None,), tf.float32))


def test_a_function_that_fails_at_made_up_numbers_needs_a_declaration():
    f = pb.external(lambda x: np.linalg.cholesky(-x))
    with pytest.raises(ExternalError, match="made-up numbers") as caught:
        tf.function(f).get_concrete_function(tf.TensorSpec((2, 2), tf.float64))
    assert "LinAlgError" in str(caught.value)


def test_a_declaration_that_is_no_spec_is_refused():
    with pytest.raises(DefinitionError, match="anything with a shape and a dtype"):
        pb.external(lambda x: x, output=lambda x: 3)(tf.constant(X))
