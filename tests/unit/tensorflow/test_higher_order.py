"""Second and higher order: derived, given by `gradgrad`, or refused."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

X = tf.constant([0.3, -0.7, 1.1], tf.float64)


def nth(f, x, order):
    """Differentiate the sum of f `order` times."""
    if order == 0:
        return f(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = nth(f, x, order - 1)
    return tape.gradient(y, x)


SURROUNDINGS = {
    "eager": lambda f, x, n: nth(f, x, n),
    "tape inside": lambda f, x, n: tf.function(lambda x: nth(f, x, n))(x),
    "tape outside": lambda f, x, n: nth(tf.function(lambda x: f(x)), x, n),
    "one inside, the rest outside": lambda f, x, n: nth(tf.function(lambda x: nth(f, x, 1)), x, n - 1),
    "XLA": lambda f, x, n: tf.function(lambda x: nth(f, x, n), jit_compile=True)(x),
    "unknown shape": lambda f, x, n: tf.function(
        lambda x: nth(f, x, n), input_signature=[tf.TensorSpec(None, tf.float64)]
    )(x),
}
surroundings = pytest.mark.parametrize("where", SURROUNDINGS)


@pb.custom_gradient
def softplus(x):
    e = tf.exp(x)  # a residual that depends on the input

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@pb.custom_gradient
def softmax_like(x):
    y = tf.nn.softmax(x)  # the residual is the output

    def grad(dy):
        return y * (dy - tf.reduce_sum(dy * y, axis=-1, keepdims=True))

    return y, grad


@surroundings
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_residuals_computed_in_the_body_are_differentiated(where, order):
    actual = SURROUNDINGS[where](softplus, X, order)
    np.testing.assert_allclose(actual, nth(tf.math.softplus, X, order), rtol=1e-8)


@surroundings
def test_an_output_kept_as_residual_is_differentiated(where):
    def square(f):
        return lambda x: tf.square(f(x)) * tf.constant([1.0, 2.0, 4.0], tf.float64)

    actual = SURROUNDINGS[where](square(softmax_like), X, 2)
    np.testing.assert_allclose(actual, nth(square(tf.nn.softmax), X, 2), rtol=1e-8)


@pb.custom_gradient
def cube(x):
    def grad(dy):
        dx = 3 * x * x * dy

        def gradgrad(ddx):
            return 60 * x * dy * ddx  # ten times the derivative: shows that it is used

        return dx, gradgrad

    return x**3, grad


@surroundings
def test_an_explicit_second_order_is_used(where):
    np.testing.assert_allclose(SURROUNDINGS[where](cube, X, 1), 3 * X**2)
    np.testing.assert_allclose(SURROUNDINGS[where](cube, X, 2), 60 * X)
    np.testing.assert_allclose(SURROUNDINGS[where](cube, X, 3), [60.0] * 3)


@surroundings
def test_an_explicit_second_order_is_linked_to_the_cotangent(where):
    """d/dx of exp(cube(x)) needs the dependence of dx on dy, which `gradgrad` does not say."""

    @pb.custom_gradient
    def right_cube(x):
        def grad(dy):
            return 3 * x * x * dy, lambda ddx: 6 * x * dy * ddx

        return x**3, grad

    actual = SURROUNDINGS[where](lambda x: tf.exp(right_cube(x)), X, 2)
    np.testing.assert_allclose(actual, nth(lambda x: tf.exp(x**3), X, 2), rtol=1e-10)


def test_an_explicit_second_order_of_two_inputs(wrap):
    @pb.custom_gradient
    def f(x, w):
        def grad(dz):
            def gradgrad(ddx, ddw):
                return 2 * w * dz * ddx + 2 * x * dz * ddw, 2 * x * dz * ddx

            return 2 * x * w * dz, x * x * dz, gradgrad

        return x * x * w, grad

    w = X + 2

    def mixed(f):
        with tf.GradientTape() as outer:
            outer.watch([X, w])
            with tf.GradientTape() as inner:
                inner.watch([X, w])
                y = tf.reduce_sum(wrap(lambda x, w: f(x, w))(X, w))
            dx, dw = inner.gradient(y, [X, w])
            total = tf.reduce_sum(dx * [1.0, 2.0, 3.0]) + tf.reduce_sum(dw * [5.0, 7.0, 11.0])
        return outer.gradient(total, [X, w])

    np.testing.assert_allclose(mixed(f), mixed(lambda x, w: x * x * w), rtol=1e-10)


def test_gradgrad_with_a_wrong_signature_is_refused():
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy, lambda: dy

        return x, grad

    with pytest.raises(pb.errors.GradSignatureError, match="one per cotangent"):
        nth(f, X, 2)


@pb.custom_gradient(order=1)
def first_only(x):
    def grad(dy):
        return 2 * x * dy

    return x * x, grad


@surroundings
def test_order_one_gives_the_first_and_refuses_the_second_derivative(where):
    np.testing.assert_allclose(SURROUNDINGS[where](first_only, X, 1), 2 * X)
    if where == "XLA":
        with pytest.raises(pb.errors.SecondOrderError, match="a second derivative was asked for"):
            SURROUNDINGS[where](first_only, X, 2)
        return
    # A graph traces second derivatives ahead of need, so there the refusal comes when it runs.
    refusals = (pb.errors.SecondOrderError, tf.errors.InvalidArgumentError)
    with pytest.raises(refusals, match="a second derivative was asked for"):
        SURROUNDINGS[where](first_only, X, 2)


def test_order_one_does_not_disturb_a_persistent_tape(wrap):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = wrap(lambda x: first_only(x))(X)
    np.testing.assert_allclose(tape.gradient(y, X), 2 * X)
    np.testing.assert_allclose(tape.gradient(y, X), 2 * X)


def test_a_body_that_draws_random_numbers_refuses_to_be_run_twice():
    @pb.custom_gradient
    def noisy(x):
        mask = tf.cast(tf.random.uniform([3]) > 0.5, tf.float64)

        def grad(dy):
            return dy * mask * 2 * x

        return x * x * mask, grad

    assert nth(noisy, X, 1) is not None
    with pytest.raises(pb.errors.SecondOrderError, match="draws random numbers"):
        nth(noisy, X, 2)


def test_random_numbers_are_the_same_in_all_orders_of_a_graph():
    @pb.custom_gradient
    def noisy(x):
        mask = tf.cast(tf.random.uniform([3]) > 0.5, tf.float64)

        def grad(dy):
            return dy * mask * 2 * x

        return x * x * mask, grad

    @tf.function
    def both(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = noisy(x)
            dx = inner.gradient(y, x)
        return y, outer.gradient(dx, x)

    for _ in range(5):
        y, ddx = both(X)
        np.testing.assert_array_equal(ddx.numpy() != 0, y.numpy() != 0)


def test_the_body_runs_once_for_a_first_derivative():
    runs = []

    @pb.custom_gradient
    def counted(x):
        runs.append(1)

        def grad(dy):
            return dy

        return x * 1, grad

    nth(counted, X, 1)
    assert len(runs) == 1


def test_unwatched_calls_keep_nothing(wrap):
    """The value is right when nobody differentiates."""
    np.testing.assert_allclose(wrap(softplus)(X), tf.math.softplus(X), rtol=1e-10)
