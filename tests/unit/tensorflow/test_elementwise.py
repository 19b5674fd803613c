"""Elementwise functions from their partial derivatives."""

import sys

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

A = tf.constant([[0.5, -1.0, 2.0], [1.0, 3.0, -0.25]])
ROW = tf.constant([1.5, 0.25, -3.0])
COLUMN = tf.constant([[2.0], [-1.0]])
SCALAR = tf.constant(0.75)


def three(a, b, c):
    return tf.sin(a) * b + c * c * a


RULES = {
    "one function": pb.elementwise(three, lambda a, b, c: (tf.cos(a) * b + c * c, tf.sin(a), 2 * c * a)),
    "a list": pb.elementwise(
        three, [lambda a, b, c: tf.cos(a) * b + c * c, lambda a, b, c: tf.sin(a), lambda a, b, c: 2 * c * a]
    ),
}


@pytest.mark.parametrize("others", [(ROW, COLUMN), (SCALAR, A), (COLUMN, SCALAR)], ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_broadcast_arguments_get_gradients_of_their_own_shape(rule, others, pull):
    _, gradients = pull(RULES[rule], [A, *others])
    _, expected = pull(three, [A, *others])
    for gradient, wanted in zip(gradients, expected):
        np.testing.assert_allclose(gradient, wanted, rtol=1e-5)


def test_the_first_argument_may_be_the_small_one(pull):
    _, gradients = pull(RULES["a list"], [SCALAR, A, COLUMN])
    _, expected = pull(three, [SCALAR, A, COLUMN])
    for gradient, wanted in zip(gradients, expected):
        np.testing.assert_allclose(gradient, wanted, rtol=1e-5)


def test_partials_may_use_the_output(pull):
    tanh = pb.elementwise(tf.tanh, lambda x, output: 1 - output * output)
    _, (dx,) = pull(tanh, [A])
    _, (expected,) = pull(tf.tanh, [A])
    np.testing.assert_allclose(dx, expected, rtol=1e-5)


def test_as_a_decorator(pull):
    @pb.elementwise(partials=lambda x, y: (y, x))
    def product(x, y):
        return x * y

    assert product.__name__ == "product"
    _, gradients = pull(product, [A, ROW], [tf.ones_like(A)])
    np.testing.assert_allclose(gradients[1], tf.reduce_sum(A, 0), rtol=1e-6)


def test_higher_orders_and_forward_mode_follow(wrap):
    sine = pb.elementwise(tf.sin, tf.cos)

    @wrap
    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = sine(x)
            dx = inner.gradient(y, x)
        return outer.gradient(dx, x)

    @wrap
    def forward(a, b):
        with tf.autodiff.ForwardAccumulator(
            [a, b], [2 * tf.ones_like(a), 3 * tf.ones_like(b)]
        ) as accumulator:
            y = RULES["a list"](a, b, COLUMN)
        return accumulator.jvp(y)

    np.testing.assert_allclose(second(A), -tf.sin(A), rtol=1e-5)
    expected = 2 * (tf.cos(A) * ROW + COLUMN**2) + 3 * tf.sin(A)
    np.testing.assert_allclose(forward(A, ROW), expected, rtol=1e-5)


def test_a_complex_argument_takes_the_conjugate():
    z = tf.constant([1 + 2j, -0.5j])
    square = pb.elementwise(lambda z: z * z, lambda z: 2 * z)

    def gradient(f):
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = f(z)
        return tape.gradient(y, z, output_gradients=tf.constant([1j, 2.0 + 1j]))

    np.testing.assert_allclose(gradient(square), gradient(lambda z: z * z), rtol=1e-6)


def test_none_for_a_partial_is_no_gradient():
    f = pb.elementwise(lambda x, y: x * y, lambda x, y: (y, None))
    with tf.GradientTape() as tape:
        tape.watch([A, ROW])
        z = f(A, ROW)
    _, dy = tape.gradient(z, [A, ROW])
    assert dy is None


def test_statics_are_handed_to_the_partials(pull):
    power = pb.elementwise(lambda x, n: x**n, lambda x, n: n * x ** (n - 1))
    _, (dx,) = pull(lambda x: power(x, 3), [A], [tf.ones_like(A)])
    np.testing.assert_allclose(dx, 3 * A**2, rtol=1e-5)


@pytest.mark.parametrize(
    "partials", [lambda x, y: y, lambda x, y: (y, x, x), [lambda x, y: y]], ids=["1", "3", "[1]"]
)
def test_a_wrong_number_of_partials_is_refused(partials):
    f = pb.elementwise(lambda x, y: x * y, partials)
    with tf.GradientTape() as tape:
        tape.watch(A)
        z = f(A, ROW)
    with pytest.raises(pb.errors.CotangentCountError, match="expected: 2: one per tensor argument"):
        tape.gradient(z, A)


def test_partials_that_are_no_functions_are_refused():
    with pytest.raises(pb.errors.DefinitionError, match="partial derivatives"):
        pb.elementwise(tf.sin, 3)


@pytest.mark.parametrize("like", [ROW, COLUMN, SCALAR, A], ids=["row", "column", "scalar", "same"])
def test_unbroadcast_sums_what_was_broadcast(like, wrap):
    dx = tf.constant([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    with tf.GradientTape() as tape:
        tape.watch(like)
        y = like * tf.ones([2, 3])
    expected = tape.gradient(y, like, output_gradients=dx)
    np.testing.assert_allclose(wrap(lambda d: pb.unbroadcast(d, like=like))(dx), expected)
    unknown = tf.function(
        lambda d, x: pb.unbroadcast(d, like=x),
        input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None] * like.shape.rank)],
    )
    np.testing.assert_allclose(unknown(dx, like), expected)


def test_autograph_converts_what_the_user_wrote_and_nothing_of_the_library():
    ran = set()

    def look(frame, event, _):
        if "__autograph_generated" in frame.f_code.co_filename:
            ran.add(frame.f_code.co_name)

    def shrunk(x):
        if tf.reduce_sum(x) > 0:  # a condition that only AutoGraph can make
            x = 0.5 * x
        return x

    def slope(x):
        return 0.5 * tf.ones_like(x) if tf.reduce_sum(x) > 0 else tf.ones_like(x)

    @pb.custom_gradient
    def product(x, y):
        def grad(dy):
            return pb.unbroadcast(dy * y, like=x), pb.unbroadcast(dy * x, like=y)

        return x * y, grad

    rule = pb.elementwise(shrunk, slope)

    @tf.function
    def traced(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = product(rule(x), tf.fill([2, 1], 3.0))
        return tape.gradient(y, x)

    sys.setprofile(look)
    try:
        found = traced(tf.ones([3]))
    finally:
        sys.setprofile(None)
    np.testing.assert_allclose(found, [3.0, 3.0, 3.0])
    converted = {name for name in ran if name.startswith("tf__")}
    assert converted == {"tf__traced", "tf__shrunk", "tf__slope", "tf__product"}
